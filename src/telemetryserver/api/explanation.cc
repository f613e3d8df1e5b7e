#include "telemetryserver/api/explanation.h"

#include <fmt/format.h>

#include "base/millis.h"
#include "scheduling/pod_names.h"
#include "scheduling/summary.h"

namespace nos::telemetryserver {
namespace {

using scheduling::PodFacts;
using scheduling::PodSummary;

// Reporters may write any number.
constexpr double kMaxAmount = 1e9;                         // of one resource
constexpr telemetry::Millis kMaxTime = 9'000'000'000'000;  // Time holds times until 2262

std::optional<Time> TimeIf(telemetry::Millis at) {
  return at > 0 && at < kMaxTime ? std::optional(Time(std::chrono::milliseconds(at)))
                                 : std::nullopt;
}

std::string DemandOf(const Pod& pod) {
  std::vector<std::pair<std::string, int64_t>> requests;
  for (const auto& [resource, amount] : pod.requests) {
    if (!(amount > 0) || amount > kMaxAmount) continue;
    requests.emplace_back(resource, static_cast<int64_t>(amount));
  }
  return scheduling::DemandText(std::move(requests));
}

std::vector<std::string> DevicesOf(const State& state, const Pod& pod) {
  std::vector<std::string> devices;
  for (const Slice& slice : state.SlicesOf(pod.ns, pod.name)) {
    const std::string gpu = fmt::format("GPU {}", slice.gpu->index);
    devices.push_back(
        slice.instance == nullptr
            ? gpu
            : fmt::format("{}@{} of {}", slice.instance->profile, slice.instance->start, gpu));
  }
  return devices;
}

std::optional<scheduling::PodEviction> EvictionOf(const State& state, const Pod& pod) {
  const Json* evicted = Find(pod.body, "evicted");
  if (evicted == nullptr || !evicted->is_object()) return std::nullopt;
  const Json* quota = Find(*evicted, "quota");
  scheduling::PodEviction eviction{std::string(FindString(*evicted, "by")), "",
                                   std::string(FindString(*evicted, "why")),
                                   quota != nullptr && quota->is_bool() && quota->get_bool()};
  const auto preemptor = state.pods().find(std::string(FindString(*evicted, "for")));
  if (preemptor == state.pods().end()) return eviction;
  const Pod& other = preemptor->second;
  eviction.preemptor = other.ns == pod.ns ? scheduling::PodText(other.ns + "/" + other.name)
                                          : "a pod of another namespace";
  return eviction;
}

PodFacts FactsOf(const State& state, const Pod& pod) {
  auto [cause, remedy] = scheduling::SplitRemedy(FindString(pod.body, "message"));
  if (remedy.empty()) remedy = std::string(FindString(pod.body, "remedy"));
  PodFacts facts{pod.ns + "/" + pod.name, pod.state, DemandOf(pod), std::move(cause),
                 std::move(remedy)};
  const std::string_view reason = FindString(pod.body, "reason");
  facts.partitioning = reason == scheduling::codes::kPartitioningGpus;
  const bool placed = pod.state != "pending";
  if (placed && !reason.empty()) {
    facts.cause =
        facts.cause.empty() ? std::string(reason) : fmt::format("{}: {}", reason, facts.cause);
  }
  facts.node = pod.node;
  if (placed) facts.devices = DevicesOf(state, pod);
  facts.since = TimeIf(pod.finished > 0 ? pod.finished : pod.started);
  facts.ends = TimeIf(pod.ends);
  facts.priority = pod.priority;
  facts.capacity = std::string(FindString(pod.body, "capacity"));
  facts.eviction = EvictionOf(state, pod);
  facts.estimate = TimeIf(pod.estimate.at);
  facts.estimate_by = std::string(pod.estimate.by);
  return facts;
}

}  // namespace

void AppendExplanation(const State& state, const Pod& pod, JsonText& json) {
  const PodSummary summary = scheduling::Summarize(FactsOf(state, pod));
  json.Begin('{').Key("headline").Text(summary.headline).Key("cause").Text(summary.cause);
  json.Key("in_the_way").Begin('[');
  for (const std::string& one : summary.in_the_way) json.Text(one);
  json.End(']').Key("actions").Begin('[');
  for (const PodSummary::Action& action : summary.actions) {
    json.Begin('{').Key("text").Text(action.text).Key("brings").Text(action.brings).End('}');
  }
  json.End(']').Key("eta");
  summary.eta ? json.Number(ToMillis(*summary.eta)) : json.Null();
  json.Key("eta_reason").Text(summary.eta_reason);
  json.Key("evictable_by").Text(summary.evictable_by).End('}');
}

}  // namespace nos::telemetryserver
