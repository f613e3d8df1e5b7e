#include "controllers/partitioner/pending_plans.h"

#include <algorithm>
#include <set>

#include "cluster/annotations.h"

namespace nos::controllers {
namespace {

constexpr int kConflictsInARow = 2;  // answered by planning again at once
// Upper limit of the back-off. Conflicts end soon, and a server or webhook that is down may be back
// soon. Any other refusal is a rule that will probably last.
constexpr Duration kFirstRest = std::chrono::seconds(1);
Duration LongestRest(Code why, Duration of_a_rule) {
  if (why == Code::kConflict) return std::chrono::seconds(10);
  const bool busy = why == Code::kUnavailable || why == Code::kDeadline;
  return busy ? std::chrono::seconds(30) : of_a_rule;
}

reconcile::PlanResult ResultOf(const cluster::Node& node, const std::string& plan) {
  const auto text = node.meta.annotations.find(cluster::kPlanResult);
  if (text != node.meta.annotations.end()) {
    Result<reconcile::PlanResult> result = reconcile::ReadPlanResult(text->second);
    if (result.ok() && result->plan == plan) return std::move(result).value();
  }
  return {plan, true, {}};  // the agent only acknowledges the plan and reports no result
}

}  // namespace

std::vector<FlightNotice> PendingPlans::Update(const Nodes& nodes, Time now) {
  std::vector<FlightNotice> notices;
  std::set<std::string> present;
  for (const auto& node : nodes) {
    present.insert(node->meta.name);
    const std::string plan = cluster::SpecPlan(*node);
    if (plan.empty() || !cluster::IsManaged(*node)) {
      states_.erase(node->meta.name);
      continue;
    }
    State& state = states_[node->meta.name];
    const bool landed = cluster::StatusPlan(*node) == plan;
    std::optional<FlightNotice> notice =
        landed ? Acknowledged(*node, plan, state, now) : Waiting(plan, state, now);
    if (!notice) continue;
    notice->node = node->meta.name;
    notices.push_back(std::move(*notice));
  }
  const auto gone = [&](const auto& item) { return !present.contains(item.first); };
  std::erase_if(states_, gone);
  std::erase_if(refusals_, gone);
  return notices;
}

void PendingPlans::Sent(const std::string& node, const std::string& plan, Time now) {
  State& state = states_[node];
  state.plan = plan;
  state.since = now;
  state.silent = false;
  refusals_.erase(node);
}

bool PendingPlans::Refused(const std::string& node, Code why, Time now) {
  Pause& refusal = refusals_[node];
  ++refusal.failures;
  refusal.until = now;
  if (why == Code::kConflict && refusal.failures <= kConflictsInARow) return false;
  const kube::BackOff pauses{kFirstRest, LongestRest(why, pauses_.limit)};
  refusal.until += pauses.After(refusal.failures);
  return true;
}

std::optional<FlightNotice> PendingPlans::Waiting(const std::string& plan, State& state, Time now) {
  if (state.plan != plan) {
    state.plan = plan;
    state.since = now;
    state.silent = false;
  }
  if (state.silent || now - state.since < pauses_.base) return std::nullopt;
  state.silent = true;
  Extend(state.silence, now);
  return FlightNotice{FlightNotice::Kind::kSilent, "", plan, {}, now - state.since};
}

std::optional<FlightNotice> PendingPlans::Acknowledged(const cluster::Node& node,
                                                       const std::string& plan, State& state,
                                                       Time now) {
  const bool news = state.judged != plan;
  const bool awaited = state.plan == plan;
  state.plan.clear();
  state.silent = false;
  state.silence = {};
  state.judged = plan;
  if (!news && state.gpus.empty()) return std::nullopt;
  reconcile::PlanResult result = ResultOf(node, plan);
  if (!news) {  // a layout that failed before may have been created since
    if (result.applied) state.gpus.clear();
    return std::nullopt;
  }
  if (result.applied) {
    state.gpus.clear();
    if (!awaited) return std::nullopt;  // acknowledged before this process started
    return FlightNotice{FlightNotice::Kind::kApplied, "", plan, {}, {}};
  }
  std::set<int> failed;
  for (const gpu::Obstacle& obstacle : result.obstacles) {
    // "InUse" is also visible in the status, so planning avoids it
    if (obstacle.code != "InUse") failed.insert(obstacle.gpu);
  }
  for (const int gpu : failed) Extend(state.gpus[gpu], now);
  return FlightNotice{FlightNotice::Kind::kPartial, "", plan, std::move(result.obstacles), {}};
}

void PendingPlans::Extend(Pause& pause, Time now) const {
  pause.until = now + pauses_.After(++pause.failures);
}

bool PendingPlans::InFlight(const std::string& node) const {
  const auto found = states_.find(node);
  return found != states_.end() && !found->second.plan.empty() && !found->second.silent;
}

bool PendingPlans::Resting(const std::string& node, int gpu, Time now) const {
  const auto refusal = refusals_.find(node);
  if (refusal != refusals_.end() && refusal->second.until > now) return true;
  const auto found = states_.find(node);
  if (found == states_.end()) return false;
  if (InFlight(node) || found->second.silence.until > now) return true;
  const auto pause = found->second.gpus.find(gpu);
  return pause != found->second.gpus.end() && pause->second.until > now;
}

std::optional<Time> PendingPlans::NextChange(Time now) const {
  std::optional<Time> next;
  const auto consider = [&](Time time) {
    if (time > now) next = std::min(next.value_or(time), time);
  };
  for (const auto& [name, state] : states_) {
    if (!state.plan.empty() && !state.silent) consider(state.since + pauses_.base);
    consider(state.silence.until);
    for (const auto& [gpu, pause] : state.gpus) consider(pause.until);
  }
  for (const auto& [name, refusal] : refusals_) consider(refusal.until);
  return next;
}

}  // namespace nos::controllers
