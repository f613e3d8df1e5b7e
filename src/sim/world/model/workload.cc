#include "sim/workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "codec/yaml.h"
#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::sim {
namespace {

Duration RandomTime(Duration from, Duration to, Random& random) {
  const auto span = static_cast<uint64_t>(std::max<Duration::rep>(1, (to - from).count()));
  return from + Duration(static_cast<Duration::rep>(random.Below(span)));
}

const std::string& RandomProfile(const gpu::Model& model, Random& random) {
  return model.profiles()[random.Below(model.profiles().size())].name;
}

bool IsShare(const std::string& profile) {
  return profile == "shared" || gpu::IsShareResource("nvidia.com/gpu-" + profile) ||
         gpu::ParsePartName(profile);
}

// Moves each share into a container of its own, because several shares in one container are not
// supported (scheduling/several_shares.h). Skips large requests, which no node can satisfy.
void SpreadShares(PodSpec& pod) {
  constexpr int kFew = 4;
  std::vector<std::map<std::string, int>> more;
  for (auto& container : pod.containers) {
    for (auto& [profile, count] : container) {
      if (!IsShare(profile) || count > kFew) continue;
      for (; count > 1; --count) more.push_back({{profile, 1}});
    }
  }
  pod.containers.insert(pod.containers.end(), more.begin(), more.end());
}

PodSpec DrawPod(const RandomWorkload& options, const std::vector<const gpu::Model*>& models,
                Random& random) {
  PodSpec pod;
  const gpu::Model& model = *models[random.Below(models.size())];
  pod.containers.resize(random.Chance(0.1) ? 2 : 1);
  for (auto& container : pod.containers) {
    container[RandomProfile(model, random)] += random.Chance(0.15) ? 2 : 1;
  }
  SpreadShares(pod);
  if (random.Chance(options.impossible)) pod.containers[0][RandomProfile(model, random)] += 100;
  if (random.Chance(0.25)) pod.priority = 10;
  pod.cpu = Quantity::FromMilli(static_cast<int64_t>(random.Below(8)) * 500);
  pod.arrival = RandomTime({}, options.arrivals_last, random);
  if (!random.Chance(options.endless)) {
    pod.run = RandomTime(options.shortest_run, options.longest_run, random);
  }
  return pod;
}

void DrawGang(const RandomWorkload& options, const std::vector<const gpu::Model*>& models,
              GangSpec& gang, Random& random) {
  PodSpec pod = DrawPod(options, models, random);
  pod.containers.resize(1);
  if (random.Chance(options.gangs_without_slices)) {
    pod.containers[0].clear();
    pod.cpu = Quantity::FromValue(1 + static_cast<int64_t>(random.Below(8)));
  }
  pod.labels[std::string(kPodGroupLabel)] = gang.name;
  gang.least = 2 + static_cast<int>(random.Below(3));
  gang.arrival = pod.arrival;
  const int size = gang.least + (random.Chance(0.1) ? -1 : random.Chance(0.3) ? 1 : 0);
  for (int i = 0; i < size; ++i) {
    pod.name = fmt::format("{}-{}", gang.name, i + 1);
    if (random.Chance(0.5))
      pod.arrival = RandomTime(gang.arrival / 2, options.arrivals_last, random);
    gang.pods.push_back(pod);
  }
}

}  // namespace

std::vector<PodSpec> DrawWorkload(const RandomWorkload& options,
                                  const std::vector<const gpu::Model*>& models, Random& random) {
  std::vector<PodSpec> pods;
  for (int i = 0; i < options.pods; ++i) {
    pods.push_back(DrawPod(options, models, random));
    pods.back().name = fmt::format("p{}", i + 1);
  }
  return pods;
}

void DrawInitContainers(const std::vector<const gpu::Model*>& models, std::vector<PodSpec>& pods,
                        Random& random) {
  for (PodSpec& pod : pods) {
    if (!random.Chance(0.3)) continue;
    if (random.Chance(0.7)) pod.init = pod.containers[0];
    const gpu::Model& model = *models[random.Below(models.size())];
    if (pod.init.empty()) pod.init[RandomProfile(model, random)] = 1;
    if (random.Chance(0.5) && !IsShare(pod.init.begin()->first)) ++pod.init.begin()->second;
    pod.init_run = RandomTime({}, std::chrono::seconds(60), random);
  }
}

std::vector<GangSpec> DrawGangs(const RandomWorkload& options,
                                const std::vector<const gpu::Model*>& models, Random& random) {
  std::vector<GangSpec> gangs(1 + random.Below(3));
  for (size_t i = 0; i < gangs.size(); ++i) {
    gangs[i].name = fmt::format("g{}", i + 1);
    DrawGang(options, models, gangs[i], random);
  }
  return gangs;
}

}  // namespace nos::sim
