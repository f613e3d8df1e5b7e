#include "controllers/autoscaler/pending_pods.h"

#include <algorithm>
#include <utility>

#include "planning/moves.h"
#include "planning/planner.h"
#include "scheduling/pod_kind.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

// True if a scheduler has found the pod unschedulable and no other controller decides where it
// runs.
bool IsUnschedulable(const cluster::Pod& pod) {
  if (!scheduling::IsPlannable(pod)) return false;
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  return scheduled != nullptr && scheduled->status == "False" &&
         scheduled->reason == "Unschedulable";
}

// Binds a copy of the pod in the snapshot without its own node name: the pod does not run yet, so
// it must not be taken for one that can be moved.
void BindPlanned(const planning::PodOutcome& outcome, cluster::ClusterSnapshot& snapshot) {
  auto bound = std::make_shared<cluster::Pod>(*outcome.pod);
  bound->promised.clear();
  for (const planning::AssignedDevice& device : outcome.devices) {
    bound->promised.push_back({device.gpu, device.placement, device.model});
  }
  // Cannot fail: the plan only uses nodes of the snapshot.
  (void)snapshot.Bind(std::move(bound), outcome.node);
}

}  // namespace

// Uses the earlier of the condition's transition time and the first time this process saw the pod.
// A restart therefore does not restart the wait, and a clock that is ahead does not prolong it.
Time PendingPods::WaitingSince(const cluster::Pod& pod, Time now) {
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  const bool dated = scheduled != nullptr && scheduled->last_transition != Time{};
  const Time since = dated ? scheduled->last_transition : pod.meta.created;
  const Time seen = first_seen_.try_emplace(pod.Key() + "/" + pod.meta.uid, now).first->second;
  return std::min(since, seen);
}

PendingDemand PendingPods::Collect(const ScalingCycle& cycle,
                                   const cluster::ClusterContext& context) {
  PendingDemand demand;
  demand.busy = relocations_.Busy(cycle.view);
  std::vector<std::shared_ptr<const cluster::Pod>> settled, others;
  std::set<std::string> waiting, keys;
  const auto all = cycle.view.pods.Snapshot();
  for (const auto& pod : *all) {
    // In other namespaces any user may have set these labels.
    const bool signals =
        pod->meta.ns == config_.signal.ns || pod->meta.ns == config_.signal.former_ns;
    if (signals && IsDemand(*pod)) continue;
    demand.all.push_back(pod);
    const bool holds =
        pod->meta.ns == config_.relocations.ns || pod->meta.ns == config_.relocations.former_ns;
    const bool is_place = holds && IsPlaceholder(*pod);
    if (is_place && scheduling::IsPending(*pod)) demand.placeholders_wait = true;
    if (is_place && !pod->node_name.empty()) demand.held.insert(pod->node_name);
    if (!is_place) others.push_back(pod);
    if (is_place || !IsUnschedulable(*pod)) continue;
    const std::string key = pod->Key();
    const Time since = WaitingSince(*pod, cycle.now);
    waiting.insert(key + "/" + pod->meta.uid);
    keys.insert(key);
    if (demand.busy.contains(key)) {
      conditions_.Set(*pod, "True", kRelocatingPods, kRelocatingText, cycle.now);
    } else if (cycle.now - since < config_.settle) {
      demand.unsettled = true;
      schedule_.DecideBy(since + config_.settle);
    } else {
      settled.push_back(pod);
    }
  }
  std::erase_if(first_seen_, [&](const auto& item) { return !waiting.contains(item.first); });
  std::erase_if(in_vain_, [&](const std::string& key) { return !keys.contains(key); });
  const SliceReservations none{BackOff{}};
  demand.waiting = WithGangs(std::move(settled), others, context, none, cycle.now);
  return demand;
}

cluster::ClusterSnapshot PendingPods::BuildSnapshot(
    const ObservedCluster& cluster, const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
    const cluster::ClusterContext& context) const {
  std::vector<std::shared_ptr<const cluster::Node>> nodes;
  for (const auto& node : cluster.nodes) {
    if (!cluster.starting.contains(node->meta.name)) nodes.push_back(node);
  }
  auto snapshot = cluster::ClusterSnapshot::Build(nodes, pods, catalogue_);
  snapshot.ChangeContext() = context;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& info = snapshot.node(i);
    cluster::NodeGpus gpus = info.gpus;
    bool unknown = false;
    for (cluster::Gpu& gpu : gpus.gpus) {
      if (gpu.reported || gpu.fixed) continue;
      gpu.fixed = unknown = true;  // no agent has reported this GPU, so its instances are unknown
    }
    if (!unknown) continue;
    const std::string name = info.node->meta.name;
    (void)snapshot.SetGpus(name, std::move(gpus));  // cannot fail: the node is in the snapshot
  }
  return snapshot;
}

UnschedulablePods PendingPods::FindUnschedulable(
    const ScalingCycle& cycle, const cluster::ClusterContext& context, const PendingDemand& demand,
    const planning::PlanOptions& options, cluster::ClusterSnapshot& snapshot, NodeNames& used) {
  GangedPods admitted = demand.waiting;
  PlannedAdmission admission =
      AdmitByQuota(admitted, demand.all, snapshot, context, frameworks_, in_vain_);
  refused_ = std::move(admission.refused);
  for (const auto& [pod, refusal] : refused_) {
    conditions_.Set(*pod, "False", std::string(kRefusedByQuota), refusal.Text(), cycle.now);
  }
  if (admitted.pods.empty()) return {};
  planning::PlanOptions own = options;
  own.gangs = admitted.gangs;
  own.first = std::move(admission.first);
  const planning::Plan plan = planning::MakePlan(snapshot, admitted.pods, frameworks_, own);
  std::set<int> placed;
  for (size_t i = 0; i < plan.pods.size(); ++i) {
    const planning::PodOutcome& outcome = plan.pods[i];
    if (!outcome.placed) continue;
    placed.insert(static_cast<int>(i));
    BindPlanned(outcome, snapshot);
    used.insert(outcome.node);
    if (outcome.pod->FindCondition(kScalingCondition) == nullptr) continue;
    conditions_.Set(*outcome.pod, "False", planning::kCapacityAvailable, kCapacityText, cycle.now);
  }
  const UnschedulablePods all{std::move(admitted.pods), std::move(admitted.gangs)};
  return all.Without(placed);
}

void PendingPods::YieldQuota(const UnschedulablePods& unschedulable,
                             const std::vector<planning::LeftOut>& left_out) {
  std::set<std::string> kinds;
  const auto kind_of = [](const cluster::Pod& pod) {
    return pod.meta.ns + " " + scheduling::KindOf(pod);
  };
  std::set<std::string> refused;
  for (const auto& [pod, refusal] : refused_) refused.insert(pod->Key());
  bool fresh = false;
  for (const planning::LeftOut& left : left_out) {
    const cluster::Pod& pod = *unschedulable.pods[static_cast<size_t>(left.pod)];
    // The pods of a refused gang are still listed here so that their reason can be reported.
    if (refused.contains(pod.Key())) continue;
    fresh |= in_vain_.insert(pod.Key()).second;
    if (!refused_.empty()) kinds.insert(kind_of(pod));
  }
  for (const auto& [pod, refusal] : refused_) {
    if (kinds.contains(kind_of(*pod))) in_vain_.insert(pod->Key());
  }
  if (fresh && !refused_.empty()) schedule_.DecideBy(Time{});  // at the end of the pause
}

}  // namespace nos::controllers
