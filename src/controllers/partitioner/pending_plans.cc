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

std::vector<PlanNotice> PendingPlans::Update(const Nodes& nodes, Time now) {
  std::vector<PlanNotice> notices;
  std::set<std::string> present, planned;
  for (const auto& node : nodes) {
    const std::string plan = cluster::SpecPlan(*node);
    present.insert(node->meta.name);
    if (plan.empty() || !cluster::IsManaged(*node)) continue;
    planned.insert(node->meta.name);
    State& state = states_[node->meta.name];
    const bool landed = cluster::StatusPlan(*node) == plan;
    std::optional<PlanNotice> notice =
        landed ? Acknowledged(*node, plan, state, now) : Waiting(node->meta.name, plan, state, now);
    if (!notice) continue;
    notice->node = node->meta.name;
    notices.push_back(std::move(*notice));
  }
  const auto not_planned = [&](const std::string& node) { return !planned.contains(node); };
  std::erase_if(states_, [&](const auto& item) { return not_planned(item.first); });
  silences_.ForgetIf([&](const auto& node, const auto&) { return not_planned(node); });
  gpus_.ForgetIf([&](const auto& gpu, const auto&) { return not_planned(gpu.first); });
  refusals_.ForgetIf([&](const auto& node, const auto&) { return !present.contains(node); });
  return notices;
}

void PendingPlans::Sent(const std::string& node, const std::string& plan, Time now) {
  State& state = states_[node];
  state.plan = plan;
  state.since = now;
  state.silent = false;
  refusals_.Forget(node);
}

bool PendingPlans::Refused(const std::string& node, Code why, Time now) {
  auto& refusal =
      refusals_.Failed(node, now, {kFirstRest, LongestRest(why, refusals_.pauses().limit)});
  if (why != Code::kConflict || refusal.failures > kConflictsInARow) return true;
  refusal.until = now;
  return false;
}

std::optional<PlanNotice> PendingPlans::Waiting(const std::string& node, const std::string& plan,
                                                State& state, Time now) {
  if (state.plan != plan) {
    state.plan = plan;
    state.since = now;
    state.silent = false;
  }
  if (state.silent || now - state.since < ack_deadline_) return std::nullopt;
  state.silent = true;
  silences_.Failed(node, now);
  return PlanNotice{PlanNotice::Kind::kSilent, "", plan, {}, now - state.since};
}

std::optional<PlanNotice> PendingPlans::Acknowledged(const cluster::Node& node,
                                                     const std::string& plan, State& state,
                                                     Time now) {
  const bool news = state.processed != plan;
  const bool awaited = state.plan == plan;
  state.plan.clear();
  state.silent = false;
  silences_.Forget(node.meta.name);
  state.processed = plan;
  if (!news && !HasFailedGpus(node.meta.name)) return std::nullopt;
  reconcile::PlanResult result = ResultOf(node, plan);
  if (!news) {  // a layout that failed before may have been created since
    if (result.applied) ForgetGpus(node.meta.name);
    return std::nullopt;
  }
  if (result.applied) {
    ForgetGpus(node.meta.name);
    if (!awaited) return std::nullopt;  // acknowledged before this process started
    return PlanNotice{PlanNotice::Kind::kApplied, "", plan, {}, {}};
  }
  std::set<int> failed;
  for (const gpu::Obstacle& obstacle : result.obstacles) {
    // "InUse" is also visible in the status, so planning avoids it
    if (obstacle.code != gpu::obstacles::kInUse) failed.insert(obstacle.gpu);
  }
  for (const int gpu : failed) gpus_.Failed({node.meta.name, gpu}, now);
  return PlanNotice{PlanNotice::Kind::kPartial, "", plan, std::move(result.obstacles), {}};
}

bool PendingPlans::HasFailedGpus(const std::string& node) const {
  const auto first = gpus_.entries().lower_bound({node, 0});
  return first != gpus_.entries().end() && first->first.first == node;
}

void PendingPlans::ForgetGpus(const std::string& node) {
  gpus_.ForgetIf([&](const auto& gpu, const auto&) { return gpu.first == node; });
}

bool PendingPlans::InFlight(const std::string& node) const {
  const auto found = states_.find(node);
  return found != states_.end() && !found->second.plan.empty() && !found->second.silent;
}

bool PendingPlans::Resting(const std::string& node, int gpu, Time now) const {
  return refusals_.Resting(node, now) || InFlight(node) || silences_.Resting(node, now) ||
         gpus_.Resting({node, gpu}, now);
}

std::optional<Time> PendingPlans::NextChange(Time now) const {
  std::optional<Time> next;
  const auto consider = [&](Time time) {
    if (time > now) next = std::min(next.value_or(time), time);
  };
  for (const auto& [name, state] : states_) {
    if (!state.plan.empty() && !state.silent) consider(state.since + ack_deadline_);
  }
  for (const auto& end : {silences_.NextEnd(now), gpus_.NextEnd(now), refusals_.NextEnd(now)}) {
    if (end) consider(*end);
  }
  return next;
}

}  // namespace nos::controllers
