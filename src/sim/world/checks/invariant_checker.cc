#include "sim/world/checks/invariant_checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/world/checks/satisfiable.h"
#include "sim/world/node/claim_invariants.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {

InvariantChecker::InvariantChecker(const Environment& env, ClusterView& view, Options options,
                                   Controllers controllers)
    : env_(env),
      view_(view),
      options_(options),
      controllers_(std::move(controllers)),
      devices_(env.api) {
  view_.pods().AddHandler(
      [this](const std::string&, const auto& before, const auto& after) { OnPod(before, after); });
  view_.nodes().AddHandler([this](const std::string& name, const auto& before, const auto& after) {
    OnNode(name, before, after);
  });
}

void InvariantChecker::OnPod(const PodPtr& before, const PodPtr& after) {
  const Time now = env_.clock.Now();
  gangs_.See(before, after, now);
  quotas_.See(before, after, now);
  env_.violations.Add(quotas_.TakeProblems(now));
  // Takes time linear in the number of pods, and only evictions need it.
  const bool evicted = after != nullptr && after->FindCondition("DisruptionTarget") != nullptr;
  if (evicted) quotas_.SetReserved(Reserved());
  evictions_.See(before, after, now);
  env_.violations.Add(evictions_.TakeProblems());
  if (options_.moves) moves_.See(before, after, now);
  if (after == nullptr || after->node_name.empty()) return;
  CheckBinding(*after, before != nullptr && before->node_name.empty());
}

void InvariantChecker::OnNode(const std::string& name, const NodePtr& before,
                              const NodePtr& after) {
  const auto open = [](const NodePtr& node) { return node != nullptr && node->taints.empty(); };
  if (open(before) || open(after)) open_at_[name] = env_.clock.Now();
  if (after != nullptr && options_.annotations && !distrusted_.contains(name)) {
    env_.violations.Add(CheckNode(*after, env_.catalogue));
  }
}

// The pods for which the scheduler keeps a place while it is prepared.
std::vector<InvariantChecker::PodPtr> InvariantChecker::Reserved() const {
  std::vector<PodPtr> reserved;
  const controllers::Scheduler* scheduler = controllers_.scheduler();
  if (scheduler == nullptr || scheduler->bindings() == 0) return reserved;
  const cluster::ClusterSnapshot& assumed = scheduler->snapshot();
  for (size_t i = 0; i < assumed.size(); ++i) {
    for (const auto& pod : assumed.node(i).pods) {
      const auto truth = view_.pods().Get(pod->Key());
      if (truth != nullptr && truth->meta.uid == pod->meta.uid && truth->node_name.empty()) {
        reserved.push_back(pod);
      }
    }
  }
  return reserved;
}

// Checks that the binding of the pod never changes, and that the node had capacity if it was
// `scheduled` now.
void InvariantChecker::CheckBinding(const cluster::Pod& pod, bool scheduled) {
  if (!options_.steps) return;
  const auto place = places_.emplace(pod.meta.uid, pod.node_name).first;
  if (place->second != pod.node_name) {
    env_.violations.Add(
        fmt::format("{} was bound to {} and then to {}", pod.Key(), place->second, pod.node_name));
  }
  if (!scheduled) return;
  CheckTaints(pod);
  env_.violations.Add(CheckBoundClaims(pod, view_.client()));
  const auto rival = rival_at_.find(pod.node_name);
  if (rival != rival_at_.end() && env_.clock.Now() - rival->second <= kFaultsLinger) return;
  const auto node = view_.nodes().Get(pod.node_name);
  if (distrusted_.contains(pod.node_name)) return;
  if (node != nullptr) env_.violations.Add(CheckRoom(*node, *view_.pods().Snapshot()));
}

// Tolerates recent taints, which the scheduler may not have seen.
void InvariantChecker::CheckTaints(const cluster::Pod& pod) {
  const auto node = view_.nodes().Get(pod.node_name);
  if (node == nullptr || ToleratesTaints(pod, *node)) return;
  const auto open = open_at_.find(pod.node_name);
  if (open != open_at_.end() && env_.clock.Now() - open->second <= kFaultsLinger) return;
  env_.violations.Add(fmt::format("{} was bound to {}, whose taint it does not tolerate", pod.Key(),
                                  pod.node_name));
}

void InvariantChecker::OnBinding(const Json& binding) {
  gangs_.Asked(fmt::format("{}/{}", FindString(binding, "metadata", "namespace"),
                           FindString(binding, "metadata", "name")));
}

void InvariantChecker::OnEviction(const kube::ApiRequest& request) {
  const std::vector<std::string_view> parts = Split(request.path, '/');
  // /api/v1/namespaces/NS/pods/NAME/eviction
  constexpr size_t kNamespace = 4, kName = 6;
  if (parts.size() <= kName || !options_.steps) return;
  view_.UpdatePods();
  moves_.Asked(kube::KeyOf(parts[kNamespace], parts[kName]),
               FindString(request.body, "deleteOptions", "preconditions", "uid"), env_.clock.Now());
  env_.violations.Add(moves_.TakeProblems());
}

void InvariantChecker::OnRivalBinding(const std::string& node) {
  rival_at_[node] = env_.clock.Now();
  quotas_.SeeRival(env_.clock.Now());
}

void InvariantChecker::AfterStep(const Machine* machine) {
  if (!options_.steps) return;
  const Time now = env_.clock.Now();
  view_.UpdateNodes();
  view_.UpdatePods();
  env_.violations.Add(moves_.TakeProblems());
  devices_.Watch(now);
  env_.violations.Add(devices_.TakeProblems());
  if (machine == nullptr) return CheckGangs();
  env_.violations.Add(CheckMachine(*machine, now));
  env_.violations.Add(CheckRunningClaims(*machine, view_.client()));
}

void InvariantChecker::CheckGangs() {
  CheckPartitioning();
  const controllers::Scheduler* scheduler = controllers_.scheduler();
  if (scheduler == nullptr) return;
  env_.violations.Add(gangs_.Check(scheduler->snapshot(), env_.clock.Now()));
}

// Checks only after the faults: a fault may prevent part of a plan, and that part is planned again
// later.
void InvariantChecker::CheckPartitioning() {
  const controllers::Partitioner* partitioner = controllers_.partitioner();
  if (partitioner == nullptr || partitioner->decisions().empty()) return;
  const auto& decisions = partitioner->decisions();
  const uint64_t last = decisions.back().sequence;
  std::set<std::string> partitioned_for, planned;
  for (const controllers::Decision& decision : decisions) {
    const bool fresh = last < checked_decisions_ || decision.sequence > checked_decisions_;
    if (fresh) partitioned_for.insert(decision.pods.begin(), decision.pods.end());
  }
  checked_decisions_ = last;
  const Time now = env_.clock.Now();
  if (partitioned_for.empty() || now < env_.faults.until() + kFaultsLinger) return;
  for (const auto& [key, outcome] : partitioner->verdicts()) {
    if (outcome.placed) planned.insert(key);
  }
  for (const auto& pod : *view_.pods().Snapshot()) {
    if (!pod->nominated_node.empty()) planned.insert(pod->Key());
  }
  env_.violations.Add(gangs_.CheckPartitioning(partitioned_for, planned, now));
}

}  // namespace nos::sim
