#include "controllers/collector/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/millis.h"
#include "base/text.h"
#include "controllers/autoscaler.h"

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
    {"NodePool", "ScaledUp", "scale", "applied", "More nodes are asked of"},
    {"NodePool", "ScaledDown", "scale", "applied", "Fewer nodes are asked of"},
    {"NodePool", "NotDelivered", "scale", "failed", "Nodes did not come from"},
    {"NodePool", "ScaleFailed", "scale", "failed", "Nodes could not be asked of"},
    {"Node", "NodeEmptying", "scale", "planned", "Pods are to leave node"},
    {"Node", "NodeKept", "scale", "failed", "Pods stay on node"},
    {"Node", "NodeRemoved", "scale", "applied", "Nobody needs node"},
    {"Node", "NodeNotRemoved", "scale", "failed", "There is still node"},
    {"Pod", "MovedAway", "move", "applied", "Has to move:", true},
    {"Pod", "MadeRoom", "move", "applied", "Others have moved for"},
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
  const auto told = std::ranges::find_if(kScaling, [&](const Scaling& each) {
    return each.kind == event.kind && each.reason == event.reason;
  });
  if (told == kScaling.end()) return std::nullopt;
  const std::string name = Shortened(event.name, kMaxName);
  JsonArray pods, victims;
  if (event.kind == "Pod") {
    JsonArray& about = told->evicted ? victims : pods;
    about.push_back({{"namespace", Shortened(event.ns, kMaxName)}, {"name", name}});
  }
  const std::string about = event.kind == "Pod" ? fmt::format("{}/{}", event.ns, event.name) : name;
  return JsonObject{
      {"kind", "decision"},
      {"at", ToMillis(event.last)},
      {"made", ToMillis(event.last)},
      {"id", fmt::format("scaling/{}/{}", Shortened(event.meta.uid, kMaxName), event.count)},
      {"type", told->type},
      {"summary", fmt::format("{} {}", told->words, Shortened(about, kMaxName))},
      {"node", event.kind == "Node" ? name : ""},
      {"nodes", JsonArray()},
      {"pods", std::move(pods)},
      {"victims", std::move(victims)},
      {"state", told->state},
      {"why", Shortened(event.message, kMaxMessage)}};
}

bool EventTally::Put(const cluster::KubernetesEvent& event) {
  const auto [known, fresh] = told_.try_emplace(event.meta.uid);
  Told& told = known->second;
  const bool news = fresh || (event.count > told.count &&
                              (event.count >= 2 * told.count || event.last - told.last >= kAgain));
  if (!news) return false;
  if (fresh) order_.push_back(event.meta.uid);
  told.count = event.count;
  told.last = event.last;
  if (told.waits) {  // replaces the queued record
    const auto place = std::ranges::find(waiting_, event.meta.uid, [](auto& w) { return w.first; });
    place->second = RecordOf(event);
    return true;
  }
  told.waits = true;
  waiting_.emplace_back(event.meta.uid, RecordOf(event));
  if (waiting_.size() > kMaxWaiting) {
    told_.at(waiting_.front().first).waits = false;
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
    told_.at(waiting_.front().first).waits = false;
    records.push_back(std::move(waiting_.front().second));
    waiting_.pop_front();
  }
  while (order_.size() > kMaxKnown) {
    if (!told_.at(order_.front()).waits) {
      told_.erase(order_.front());
    } else {
      order_.push_back(order_.front());
    }
    order_.pop_front();
  }
  return records;
}

}  // namespace nos::controllers
