#include "controllers/relocation/preconditions.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cluster/selectors.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {
namespace {

using scheduling::PodText;

// Upper limit for the difference between clocks of successive leaders.
constexpr Duration kMaxSkew = std::chrono::minutes(1);

// Why it has no node yet, as its scheduler reports.
std::string WhyWaits(const cluster::Pod& placeholder) {
  if (!placeholder.node_name.empty()) return "it is bound and does not run yet";
  const cluster::Condition* scheduled = placeholder.FindCondition("PodScheduled");
  if (scheduled == nullptr || scheduled->message.empty()) return "no scheduler has placed it";
  return Shortened(scheduled->message, 200);
}

std::string WhyLost(const cluster::Pod& placeholder) {
  if (placeholder.reason.empty()) {
    return fmt::format("its phase is {}", Shortened(placeholder.phase, 20));
  }
  std::string reason = Shortened(placeholder.reason, 60);
  if (placeholder.message.empty()) return reason;
  return fmt::format("{} ({})", reason, Shortened(placeholder.message, 200));
}

// True if the node would take a new pod like this one.
bool Takes(const cluster::Node& node, const cluster::Pod& pod) {
  const cluster::Condition* ready = cluster::FindCondition(node.conditions, "Ready");
  const bool kept_away = std::ranges::any_of(node.taints, [&](const cluster::Taint& taint) {
    return taint.effect != "PreferNoSchedule" && !cluster::Tolerates(pod.tolerations, taint);
  });
  return !node.unschedulable && !kept_away && !node.meta.deleted &&
         (ready == nullptr || ready->status == "True");
}

}  // namespace

bool Preconditions::IsYoung(const Moving& moving) {
  const Time settled = moving.Since() + kSettle;
  if (now_ < settled) Due(settled);
  return now_ < settled;
}

void Preconditions::Due(Time time) { due_ = std::min(due_.value_or(time), time); }

Finding Preconditions::Check(const Moving& moving) {
  due_.reset();
  Finding found;
  found.off = WhyContradictory(moving);
  if (found.off.empty()) {
    for (const Place& place : moving.places) relocating_.emplace(place.what.uid, moving.id);
    found = CheckLost(moving);
  }
  if (found.off.empty() && !found.wait) found = CheckMark(moving);
  if (found.off.empty() && !found.wait) found = CheckPlaces(moving);
  found.due = due_;
  return found;
}

bool Preconditions::AnyIsLeft(const Moving& moving) const {
  return std::ranges::any_of(moving.places,
                             [&](const Place& place) { return IsLeft(place, memory_, now_); });
}

Finding Preconditions::CheckLost(const Moving& moving) {
  if (!AnyIsLeft(moving) || moving.Complete()) return {};
  if (!moving.Held() && IsYoung(moving)) return {"", true};
  return {fmt::format("a placeholder is gone: {} of {} are left", moving.places.size(),
                      moving.places.front().what.of)};
}

// Finds contradictions, which no relocation started by this class has.
std::string Preconditions::WhyContradictory(const Moving& moving) const {
  if (moving.mark && moving.mark->since > now_ + kMaxSkew) {
    return "the time in the node's annotation is in the future";
  }
  std::set<std::string_view> uids;
  for (const Place& place : moving.places) {
    const PlaceFor& what = place.what;
    const PlaceFor& first = moving.places.front().what;
    const std::string& name = place.pod->meta.name;
    if (what.since > now_ + kMaxSkew || what.held.value_or(what.since) > now_ + kMaxSkew) {
      return fmt::format("a time of placeholder {} is in the future", name);
    }
    const bool same_node = moving.ForPod().empty() ? what.from == moving.NodeName() : !moving.mark;
    if (what.of != first.of || what.for_pod != first.for_pod || !same_node) {
      return fmt::format("placeholders {} and {} contradict each other",
                         moving.places.front().pod->meta.name, name);
    }
    if (!uids.insert(what.uid).second) {
      return fmt::format("{} has two placeholders", PodText(what.pod));
    }
    const auto other = relocating_.find(what.uid);
    if (other != relocating_.end() && other->second != moving.id) {
      return fmt::format("{} is in relocation {} already", PodText(what.pod), other->second);
    }
  }
  return "";
}

Finding Preconditions::CheckMark(const Moving& moving) {
  const std::string name = moving.NodeName();
  const std::optional<Removal>& mark = moving.mark;
  if (!mark) {
    if (name.empty() || !AnyIsLeft(moving)) return {};
    if (view_.nodes.Get(name) == nullptr) return {fmt::format("node {} is gone", name)};
    if (!moving.Held() && IsYoung(moving)) return {"", true};
    return {fmt::format("node {} has no annotation {} any more", name, kRemoval)};
  }
  if (mark->state == Removal::State::kAsked) return {};
  if (!moving.node->unschedulable) return {fmt::format("node {} was uncordoned", name)};
  return CheckPodsOn(name, moving);
}

// Each pod on the node to be emptied must have a place or be ending. REQUIRES: moving.mark.
Finding Preconditions::CheckPodsOn(const std::string& name, const Moving& moving) {
  const auto on_node = scene_.on.find(name);
  if (on_node == scene_.on.end()) return {};
  std::set<std::string_view> placed;
  for (const Place& place : moving.places) placed.insert(place.what.uid);
  const bool missing = moving.places.empty() || !moving.Complete();
  for (const auto& pod : on_node->second) {
    if (!HasToGoFirst(*pod, config_.rules)) continue;
    if (const std::optional<Time> deleted = pod->meta.deleted) {
      const Time late = *deleted + config_.drain_timeout;
      if (now_ >= late)
        return {fmt::format("{} on node {} does not terminate", PodText(pod->Key()), name)};
      Due(late);
    } else if (!placed.contains(pod->meta.uid)) {
      const bool emptied = moving.mark && moving.mark->state == Removal::State::kEmptied;
      if (missing && !emptied && !moving.Held() && IsYoung(moving)) return {"", true};
      return {fmt::format("{} is on node {} and has no placeholder", PodText(pod->Key()), name)};
    }
  }
  return {};
}

Finding Preconditions::CheckPlaces(const Moving& moving) {
  if (!AnyIsLeft(moving)) return {};
  if (std::string why = WhyNoRoomWanted(moving); !why.empty()) return {std::move(why)};
  for (const Place& place : moving.places) {
    if (!IsLeft(place, memory_, now_)) continue;
    if (std::string why = WhyNotMoved(place); !why.empty()) return {std::move(why)};
  }
  return {WhyTooLate(moving)};
}

std::string Preconditions::WhyNoRoomWanted(const Moving& moving) const {
  const std::string key = moving.ForPod();
  if (key.empty()) return "";
  const auto pod = view_.pods.Get(key);
  if (pod == nullptr || pod->meta.deleted || pod->Finished()) {
    return fmt::format("{} is not pending any more", PodText(key));
  }
  return pod->node_name.empty() ? "" : fmt::format("{} has a node already", PodText(key));
}

std::string Preconditions::WhyNotMoved(const Place& place) const {
  const PlaceFor& what = place.what;
  const std::string name = PodText(what.pod);
  const cluster::Pod& pod = *place.pod;
  const auto target = view_.nodes.Get(what.to);
  if (target == nullptr || RemovalOf(*target)) {
    return fmt::format("node {}, to which {} moves, is being removed", what.to, name);
  }
  if (!Takes(*target, *place.moved)) {
    return fmt::format("node {}, to which {} moves, accepts no pods", what.to, name);
  }
  if (pod.Finished() || (what.held && !place.IsHeld())) {
    return fmt::format("the placeholder of {} on node {} was lost: {}", name, what.to,
                       WhyLost(pod));
  }
  if (!pod.node_name.empty() && pod.node_name != what.to) {
    return fmt::format("the placeholder of {} is on node {} instead of {}", name, pod.node_name,
                       what.to);
  }
  if (place.moved->node_name != what.from) {
    return fmt::format("{} is not on node {}", name, what.from);
  }
  const planning::Mobility mobility = MobilityOf(*place.moved, config_.rules);
  if (mobility.kind != planning::Mobility::kMoves) {
    return fmt::format("{} {}", name, mobility.why);
  }
  if (!AsksForAsMuch(pod, *place.moved)) {
    return fmt::format("{} requests more than its placeholder", name);
  }
  return "";
}

std::string Preconditions::WhyTooLate(const Moving& moving) {
  if (!moving.Held()) {
    const Time deadline = moving.Since() + config_.hold_timeout;
    Due(deadline);
    if (now_ < deadline) return "";
    const auto missing =
        std::ranges::find_if(moving.places, [](const Place& place) { return !place.IsHeld(); });
    if (missing == moving.places.end()) return "the placeholders did not run in time";
    return fmt::format("the placeholder of {} did not run on node {} within {}: {}",
                       PodText(missing->what.pod), missing->what.to,
                       FormatAge(config_.hold_timeout), WhyWaits(*missing->pod));
  }
  Time held = Time::max();
  for (const Place& place : moving.places) held = std::min(held, place.what.held.value_or(now_));
  const Time deadline = held + config_.drain_timeout;
  Due(deadline);
  if (now_ < deadline) return "";
  const auto left = std::ranges::find_if(
      moving.places, [&](const Place& place) { return IsLeft(place, memory_, now_); });
  return fmt::format("{} could not be evicted within {}: its PodDisruptionBudget forbids it",
                     PodText(left->what.pod), FormatAge(config_.drain_timeout));
}

}  // namespace nos::controllers
