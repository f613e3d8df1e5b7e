#include "controllers/collector/event_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/millis.h"
#include "base/text.h"
#include "controllers/autoscaler.h"
#include "controllers/events.h"

namespace nos::controllers {
namespace {

// Kubernetes limits messages to 1024 characters and reasons to 128.
constexpr size_t kMaxMessage = 1024, kMaxName = 256;
// Decisions of the autoscaler by the reason of its Event.
struct Scaling {
  std::string_view kind, reason, type, state, words;
  bool evicted = false;  // its pod is the evicted one
};
constexpr std::array<Scaling, 10> kScaling = {{
    {"NodePool", events::kReasonScaledUp, "scale", "applied", "Added nodes to pool"},
    {"NodePool", events::kReasonScaledDown, "scale", "applied", "Removed nodes from pool"},
    {"NodePool", events::kReasonNotDelivered, "scale", "failed", "No nodes arrived in pool"},
    {"NodePool", events::kReasonScaleFailed, "scale", "failed", "Failed to scale pool"},
    {"Node", events::kReasonNodeEmptying, "scale", "planned", "Draining node"},
    {"Node", events::kReasonNodeKept, "scale", "failed", "Kept node"},
    {"Node", events::kReasonNodeRemoved, "scale", "applied", "Removed node"},
    {"Node", events::kReasonNodeNotRemoved, "scale", "failed", "Failed to remove node"},
    {"Pod", events::kReasonMovedAway, "move", "applied", "Moved pod", true},
    {"Pod", events::kReasonMadeRoom, "move", "applied", "Moved other pods for"},
}};
constexpr Duration kAgain = std::chrono::hours(1);

JsonObject RecordOf(const cluster::KubernetesEvent& event) {
  return {{"kind", "event"},
          {"at", ToMillis(event.last)},
          {"id", Shortened(event.meta.uid, kMaxName)},
          {"object",
           {{"kind", Shortened(event.kind, kMaxName)},
            {"namespace", Shortened(event.ns, kMaxName)},
            {"name", Shortened(event.name, kMaxName)}}},
          {"type", event.type == "Warning" ? "Warning" : "Normal"},
          {"reason", Shortened(event.reason, kMaxName)},
          {"message", Shortened(event.message, kMaxMessage)},
          {"source", Shortened(event.source, kMaxName)},
          {"count", event.count}};
}

}  // namespace

std::optional<JsonObject> ScalingRecord(const cluster::KubernetesEvent& event) {
  if (event.source != kAutoscalerName) return std::nullopt;
  const auto scaling = std::ranges::find_if(kScaling, [&](const Scaling& each) {
    return each.kind == event.kind && each.reason == event.reason;
  });
  if (scaling == kScaling.end()) return std::nullopt;
  const std::string name = Shortened(event.name, kMaxName);
  JsonArray pods, victims;
  if (event.kind == "Pod") {
    JsonArray& about = scaling->evicted ? victims : pods;
    about.push_back({{"namespace", Shortened(event.ns, kMaxName)}, {"name", name}});
  }
  const std::string about = event.kind == "Pod" ? fmt::format("{}/{}", event.ns, event.name) : name;
  return JsonObject{
      {"kind", "decision"},
      {"at", ToMillis(event.last)},
      {"made", ToMillis(event.last)},
      {"id", fmt::format("scaling/{}/{}", Shortened(event.meta.uid, kMaxName), event.count)},
      {"type", scaling->type},
      {"summary", fmt::format("{} {}", scaling->words, Shortened(about, kMaxName))},
      {"node", event.kind == "Node" ? name : ""},
      {"nodes", JsonArray()},
      {"pods", std::move(pods)},
      {"victims", std::move(victims)},
      {"state", scaling->state},
      {"why", Shortened(event.message, kMaxMessage)}};
}

bool EventTally::Put(const cluster::KubernetesEvent& event) {
  const auto [known, fresh] = reported_.try_emplace(event.meta.uid);
  Reported& reported = known->second;
  const bool news =
      fresh || (event.count > reported.count &&
                (event.count >= 2 * reported.count || event.last - reported.last >= kAgain));
  if (!news) return false;
  if (fresh) order_.push_back(event.meta.uid);
  reported.count = event.count;
  reported.last = event.last;
  if (reported.waits) {  // replaces the queued record
    const auto place = std::ranges::find(waiting_, event.meta.uid, [](auto& w) { return w.first; });
    place->second = RecordOf(event);
    return true;
  }
  reported.waits = true;
  waiting_.emplace_back(event.meta.uid, RecordOf(event));
  if (waiting_.size() > kMaxWaiting) {
    reported_.at(waiting_.front().first).waits = false;
    waiting_.pop_front();
    ++dropped_;
  }
  return true;
}

std::vector<JsonObject> EventTally::Take(Time now) {
  const double seconds = std::chrono::duration<double>(now - filled_).count();
  tokens_ = std::min(kBurst, tokens_ + std::max(0.0, seconds) * kPerSecond);
  filled_ = now;
  std::vector<JsonObject> records;
  for (; !waiting_.empty() && tokens_ >= 1; tokens_ -= 1) {
    reported_.at(waiting_.front().first).waits = false;
    records.push_back(std::move(waiting_.front().second));
    waiting_.pop_front();
  }
  while (order_.size() > kMaxKnown) {
    if (!reported_.at(order_.front()).waits) {
      reported_.erase(order_.front());
    } else {
      order_.push_back(order_.front());
    }
    order_.pop_front();
  }
  return records;
}

}  // namespace nos::controllers
