#include "telemetryserver/stories/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/table.h"
#include "base/text.h"

namespace nos::telemetryserver {
namespace {

// Kubernetes limits names to 253 characters, and messages of Events to 1024.
constexpr size_t kMaxName = 256, kMaxText = 1024;
constexpr int64_t kMaxCount = 1'000'000;  // instances of a profile on a GPU, and their sums

std::string TextAt(const Json& object, std::string_view key, size_t most) {
  return Printable(Shortened(FindString(object, key), most));
}

const JsonArray& ArrayAt(const Json& object, std::string_view key) {
  static const JsonArray none;
  const Json* value = Find(object, key);
  return value != nullptr && value->is_array() ? value->get_array() : none;
}

std::vector<StoryPod> PodsAt(const Json& record, std::string_view key) {
  std::vector<StoryPod> pods;
  for (const Json& pod : ArrayAt(record, key)) {
    StoryPod named{TextAt(pod, "namespace", kMaxName), TextAt(pod, "name", kMaxName)};
    if (!named.name.empty()) pods.push_back(std::move(named));
  }
  return pods;
}

bool TrueAt(const Json& record, std::string_view key) {
  const Json* value = Find(record, key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

void Add(const std::string& profile, int64_t count, SliceCounts& slices) {
  int64_t& sum = slices[profile];
  sum = std::min(kMaxCount, sum + count);
}

SliceCounts ProfilesOf(const Json* layout) {
  SliceCounts counts;
  const Json* profiles = layout == nullptr ? nullptr : Find(*layout, "profiles");
  if (profiles == nullptr || !profiles->is_object()) return counts;
  for (const auto& [key, value] : profiles->get_object()) {
    const std::string profile = Printable(Shortened({key.data(), key.size()}, kMaxName));
    const int64_t count = telemetry::IntegerOr(*profiles, key, 0);
    if (count > 0) counts[profile] = std::min(count, kMaxCount);
  }
  return counts;
}

// "way" is the name in records of older versions.
std::string SharingModeOf(const Json* layout) {
  if (layout == nullptr) return "";
  std::string mode = TextAt(*layout, "sharing_mode", kMaxName);
  return mode.empty() ? TextAt(*layout, "way", kMaxName) : mode;
}

const Json* LayoutOf(const Json& node, std::string_view key, int64_t gpu) {
  const JsonArray& layouts = ArrayAt(node, key);
  const auto* const found = std::ranges::find_if(layouts, [&](const Json& layout) {
    return telemetry::IntegerOr(layout, "index", -1) == gpu;
  });
  return found == layouts.end() ? nullptr : found;
}

void ReadGpu(const Json& node, int64_t gpu, Decision& decision) {
  const Json *before = LayoutOf(node, "before", gpu), *after = LayoutOf(node, "after", gpu);
  const SliceCounts had = ProfilesOf(before), has = ProfilesOf(after);
  const auto of = [](const SliceCounts& counts, const std::string& profile) {
    const auto found = counts.find(profile);
    return found == counts.end() ? 0 : found->second;
  };
  for (const auto& [profile, count] : has) {
    const int64_t more = count - of(had, profile);
    if (more > 0) Add(profile, more, decision.created);
  }
  for (const auto& [profile, count] : had) {
    const int64_t less = count - of(has, profile);
    if (less > 0) Add(profile, less, decision.destroyed);
  }
  const std::string was = SharingModeOf(before), is = SharingModeOf(after);
  if (was.empty() || is.empty() || was == is) return;
  decision.switches.push_back(fmt::format("GPU {} of {} changed from {} to {}", gpu,
                                          TextAt(node, "node", kMaxName), was, is));
}

void ReadNode(const Json& node, Decision& decision) {
  std::string name = TextAt(node, "node", kMaxName);
  if (!name.empty()) decision.nodes.push_back(std::move(name));
  std::set<int64_t> gpus;
  for (const char* key : {"before", "after"}) {
    for (const Json& layout : ArrayAt(node, key))
      gpus.insert(telemetry::IntegerOr(layout, "index", -1));
  }
  for (const int64_t gpu : gpus) ReadGpu(node, gpu, decision);
}

}  // namespace

Decision ReadDecision(const Json& record) {
  Decision decision;
  decision.id = FindString(record, "id");
  decision.type = TextAt(record, "type", kMaxName);
  decision.state = TextAt(record, "state", kMaxName);
  decision.summary = TextAt(record, "summary", kMaxText);
  decision.why = TextAt(record, "why", kMaxText);
  decision.node = TextAt(record, "node", kMaxName);
  decision.at = telemetry::IntegerOr(record, "at", 0);
  decision.made = telemetry::IntegerOr(record, "made", decision.at);
  decision.took_ms = std::max<int64_t>(-1, telemetry::IntegerOr(record, "took_ms", -1));
  decision.pods = PodsAt(record, "pods");
  decision.victims = PodsAt(record, "victims");
  decision.hidden_pods = TrueAt(record, kHiddenPods);
  decision.hidden_victims = TrueAt(record, kHiddenVictims);
  for (const Json& node : ArrayAt(record, "nodes")) ReadNode(node, decision);
  if (!decision.node.empty()) decision.nodes.push_back(decision.node);
  return decision;
}

void Settle(std::vector<Decision>& decisions) {
  std::map<std::pair<std::string, std::string>, const Decision*> latest;  // by type and node
  for (const Decision& each : decisions) {
    for (const std::string& node : each.nodes) {
      const Decision*& last = latest[{each.type, node}];
      if (last == nullptr || each.made > last->made) last = &each;
    }
  }
  std::vector<std::string> states;
  states.reserve(decisions.size());
  for (const Decision& each : decisions) {
    std::string& state = states.emplace_back(each.state);
    if (state != "planned") continue;
    for (const std::string& node : each.nodes) {
      const Decision& last = *latest.at({each.type, node});
      if (last.made <= each.made) continue;
      state = each.type == "scale" && last.state != "planned" ? last.state : "superseded";
      break;
    }
  }
  for (size_t i = 0; i < decisions.size(); ++i) decisions[i].state = std::move(states[i]);
}

}  // namespace nos::telemetryserver
