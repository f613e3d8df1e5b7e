#include "sim/world/workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "codec/yaml.h"

namespace nos::sim {
namespace {

Duration RandomTime(Duration from, Duration to, Random& random) {
  const auto span = static_cast<uint64_t>(std::max<Duration::rep>(1, (to - from).count()));
  return from + Duration(static_cast<Duration::rep>(random.Below(span)));
}

const std::string& RandomProfile(const gpu::Model& model, Random& random) {
  return model.profiles()[random.Below(model.profiles().size())].name;
}

PodSpec DrawPod(const RandomWorkload& options, const std::vector<const gpu::Model*>& models,
                Random& random) {
  PodSpec pod;
  const gpu::Model& model = *models[random.Below(models.size())];
  pod.containers.resize(random.Chance(0.1) ? 2 : 1);
  for (auto& container : pod.containers) {
    container[RandomProfile(model, random)] += random.Chance(0.15) ? 2 : 1;
  }
  if (random.Chance(options.impossible)) pod.containers[0][RandomProfile(model, random)] += 100;
  if (random.Chance(0.25)) pod.priority = 10;
  pod.cpu = Quantity::FromMilli(static_cast<int64_t>(random.Below(8)) * 500);
  pod.arrival = RandomTime({}, options.arrivals_last, random);
  if (!random.Chance(options.endless)) {
    pod.run = RandomTime(options.shortest_run, options.longest_run, random);
  }
  return pod;
}

Result<Arrival> ReadArrival(const Json& pod, std::string_view source) {
  const std::string name(FindString(pod, "metadata", "name"));
  if (FindString(pod, "kind") != "Pod" || name.empty()) {
    return Invalid(fmt::format("{}: a workload is made of Pods with names; got kind '{}'", source,
                               FindString(pod, "kind")));
  }
  const auto decoded = cluster::DecodePod(pod);
  if (!decoded.ok()) return decoded.status().Within(fmt::format("{}: pod {}", source, name));
  Arrival arrival{.at = {}, .pod = pod};
  const auto at = decoded->meta.annotations.find(kArrivalSeconds);
  if (at != decoded->meta.annotations.end()) {
    const std::optional<double> seconds = ParseDouble(at->second);
    if (!seconds || !(*seconds >= 0 && *seconds < 1e9)) {
      return Invalid(fmt::format("{}: pod {}: {}: expected seconds, got '{}'", source, name,
                                 kArrivalSeconds, at->second));
    }
    arrival.at = FromSeconds(*seconds);
  }
  JsonObject& meta = MakeObject(arrival.pod, "metadata");
  if (!meta.contains("namespace")) meta["namespace"] = "default";
  JsonObject& labels = MakeObject(arrival.pod, "metadata", "labels");
  if (!labels.contains(kPodLabel)) labels[kPodLabel] = name;
  return arrival;
}

}  // namespace

Result<Workload> ReadWorkload(std::string_view text, std::string_view source) {
  const auto documents = ParseYaml(text);
  if (!documents.ok()) return documents.status().Within(source);
  Workload workload;
  for (const Json& document : *documents) {
    const Json* items = Find(document, "items");
    if (items != nullptr && items->is_array()) {
      for (const Json& item : items->get_array()) {
        NOS_ASSIGN(workload.emplace_back(), ReadArrival(item, source));
      }
    } else {
      NOS_ASSIGN(workload.emplace_back(), ReadArrival(document, source));
    }
  }
  std::stable_sort(workload.begin(), workload.end(),
                   [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
  return workload;
}

std::vector<PodSpec> DrawWorkload(const RandomWorkload& options,
                                  const std::vector<const gpu::Model*>& models, Random& random) {
  std::vector<PodSpec> pods;
  for (int i = 0; i < options.pods; ++i) {
    pods.push_back(DrawPod(options, models, random));
    pods.back().name = fmt::format("p{}", i + 1);
  }
  return pods;
}

}  // namespace nos::sim
