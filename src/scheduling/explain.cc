#include "scheduling/explain.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cluster/instance_search.h"
#include "scheduling/explain/obstacles.h"
#include "scheduling/explain/pods_in_the_way.h"
#include "scheduling/explain/quotas.h"
#include "scheduling/explain/remedy.h"
#include "scheduling/explain/slice_shortfalls.h"
#include "scheduling/explain_promises.h"
#include "scheduling/framework.h"
#include "scheduling/slice_reasons.h"
#include "scheduling/summary.h"

namespace nos::scheduling {
namespace {

using cluster::NodeInfo;
using cluster::Pod;
using cluster::ResourceVector;
using Repartition = Explanation::Repartition;

Reason GateOf(const Framework& framework, const Pod& pod) {
  for (const PreEnqueuePlugin* plugin : framework.gates()) {
    const Verdict verdict = plugin->PreEnqueue(pod);
    if (!verdict.fits()) return {verdict.code, verdict.message};
  }
  return {};
}

// Instances that the pod would get on the node, but which are used according to the node's agent,
// by no known pod.
std::vector<Explanation::Instance> UsedByUnknown(const NodeInfo& node,
                                                 const ResourceVector& requests) {
  std::vector<Explanation::Instance> all;
  for (const auto& [id, amount] : requests.entries()) {
    if (!cluster::IsManagedOn(node, id)) continue;
    std::vector<Explanation::Instance> used;
    for (const cluster::Gpu& gpu : node.gpus.gpus) {
      for (const cluster::Instance& instance : gpu.instances) {
        const gpu::Profile& profile = gpu.model->profile(instance.placement.profile);
        // Instances that are left do not count as allocatable.
        if (!instance.used || instance.left || !instance.pod.empty()) continue;
        if (profile.resource_name != cluster::ResourceName(id)) continue;
        used.push_back({gpu.index, gpu.model->PlacementName(instance.placement)});
      }
    }
    const int64_t free = node.allocatable.Get(id) - node.requested.Get(id);
    const bool counted_free = amount > 0 && amount <= free;
    if (!counted_free || amount <= free - static_cast<int64_t>(used.size())) continue;
    all.insert(all.end(), used.begin(), used.end());
  }
  return all;
}

Explanation::Place PlaceOn(const NodeInfo& node, const ExplainInput& input) {
  Explanation::Place place{node.node->meta.name, {}};
  const ResourceVector requests = cluster::RequestsOf(input.pod);
  if (input.framework.partitioned_by() == PartitionedBy::kScheduler &&
      !cluster::HasFreeInstances(node, requests)) {
    place.repartition = FindRepartition(node, requests).value_or(Repartition());
  }
  return place;
}

void FindPlace(const ExplainInput& input, Explanation& why) {
  const NodeInfo* node = input.framework.Schedule(input.pod, input.snapshot).node;
  if (node == nullptr) return;
  const ResourceVector requests = cluster::RequestsOf(input.pod);
  auto used = UsedByUnknown(*node, requests);
  if (used.empty()) {
    why.place = PlaceOn(*node, input);
    return;
  }
  cluster::ClusterSnapshot others = input.snapshot;
  others.KeepNodes([&](const NodeInfo& other) { return UsedByUnknown(other, requests).empty(); });
  if (const NodeInfo* other = input.framework.Schedule(input.pod, others).node) {
    why.place = PlaceOn(*other, input);
    return;
  }
  why.in_use.emplace(node->node->meta.name, std::move(used));
}

// Moves the nodes that fit to a reason of their own.
void CountInUse(const SliceDemand& slices, Diagnosis& diagnosis) {
  const Reason reason = NoRoomForSlices(slices.Text(), true);
  diagnosis.entries.push_back({reason.code, reason.message, Verdict::Kind::kUnschedulable,
                               std::exchange(diagnosis.feasible, 0)});
}

// Adds the pods that would be evicted, or are being evicted, for the pod.
void AddRoom(const ExplainInput& input, Explanation& why) {
  if (input.preemption) {
    why.no_preemption = WhyNotPreempt(input.framework, input.snapshot, input.pod);
    if (!why.no_preemption.empty()) why.awaited = AwaitedBy(input);
    if (why.no_preemption.empty() && AwaitsAgent(input.framework, input.pod, input.snapshot)) {
      why.no_preemption = kAwaitsAgent;
      why.awaits_agent = input.pod.nominated_node;
    }
  }
  why.by_quota = IsCovered(input, input.pod);
  const bool evicts = why.no_preemption.empty() && input.evicts;
  if (evicts && why.by_quota && input.reclaim) {
    const auto found = input.reclaim();
    if (found && !found->victims.empty()) why.preemption = VictimsOf(*found);
  } else if (evicts && MayPreempt(input)) {
    const auto may_go = [&](const Pod& other) { return MayGoFor(input, input.pod, other); };
    EachThat rule(may_go);
    const auto found =
        FindPreemption(input.framework, input.snapshot, input.pod, *input.preemption, &rule);
    if (found) why.preemption = VictimsOf(*found);
  }
  if (why.awaited || !why.awaits_agent.empty() || !why.quota.empty()) return;
  why.in_the_way = InTheWay(input);
  why.priority_helps = why.in_the_way && why.in_the_way->priority >= input.pod.priority &&
                       WouldPreempt(input, *why.in_the_way);
}

std::optional<Explanation::Place> BeingPartitioned(const ExplainInput& input) {
  const auto promised = BeingCreatedFor(input.pod, input.snapshot);
  if (!promised) return std::nullopt;
  Explanation::Place place{input.pod.nominated_node, {}};
  for (const cluster::Gpu& gpu : input.snapshot.Find(place.node)->gpus.gpus) {
    for (const cluster::PromisedInstance& one : *promised) {
      if (one.gpu != gpu.index) continue;
      const gpu::Model& model = one.model != nullptr ? *one.model : *gpu.model;
      place.repartition.made.push_back({gpu.index, model.PlacementName(one.placement)});
    }
  }
  return place;
}

}  // namespace

Explanation Explain(const ExplainInput& input) {
  const Framework& framework = input.framework;
  Explanation why;
  why.pod = input.pod.Key();
  why.demand = DemandText(input.pod);
  why.priority = input.pod.priority;
  why.partitions_here = framework.partitioned_by() == PartitionedBy::kScheduler;
  // 1. Reasons that apply before any node: gates, the gang, a plan in progress, the quota.
  Reason gate = GateOf(framework, input.pod);
  why.gate_code = std::move(gate.code);
  why.gate = std::move(gate.message);
  why.gang = input.gang;
  why.beside = input.beside;
  why.being_partitioned = BeingPartitioned(input);
  AskQuota(input, why);
  // 2. Reasons by node: the nearest node of all, the nearest without shortfall, and the nearest
  //    whose shortfall is held by less important pods.
  if (!why.being_partitioned && why.quota.empty()) FindPlace(input, why);
  why.diagnosis = framework.Diagnose(input.pod, input.snapshot);
  std::optional<Obstacles> nearest, liftable, yielding;
  const bool preempts = MayPreempt(input);
  const Cycle cycle = framework.PreFilter(input.pod, input.snapshot);
  const SliceDemand slices = DemandOf(input, Advertised::kCounted);
  SliceShortfalls slice_lacks(slices);
  std::optional<Remedy> opt_in;
  for (size_t i = 0; i < input.snapshot.size() && cycle.verdict.fits(); ++i) {
    const Obstacles here(cycle, input.pod, input.snapshot.node(i));
    if (here.none()) continue;
    if (!nearest || here.Distance() < nearest->Distance()) nearest.emplace(here);
    slice_lacks.Add(here, input.snapshot.node(i));
    if (!opt_in && here.NeedsOptIn() && here.LacksOnlySlices()) {
      opt_in = slices.OptIn(input.snapshot.node(i), input.pod);
    }
    if (here.objections() == 0) continue;
    if (here.lacks() == 0 && (!liftable || here.Distance() < liftable->Distance())) {
      liftable.emplace(here);
    }
    const bool yields = here.lacks() > 0 && preempts && here.GiveWay();
    if (yields && (!yielding || here.Distance() < yielding->Distance())) yielding.emplace(here);
  }
  if (why.in_use) CountInUse(slices, why.diagnosis);
  slice_lacks.Refine(why.diagnosis);
  // 3. Pods to evict. This is expensive, so it is skipped if the pod gets a node anyway.
  const bool on_its_way = why.place || why.in_use || why.being_partitioned;
  if (nearest && !on_its_way) why.nearest = nearest->nearest();
  const bool may_go = why.quota.empty() || input.reclaim != nullptr;
  if (!on_its_way && why.gate.empty() && may_go) AddRoom(input, why);
  const auto node_of = [](const auto& found) {
    return found ? std::optional(found->nearest()) : std::nullopt;
  };
  // 4. The remedy.
  why.impossible = DemandOf(input).NoModelHasProfile();
  if (!why.impossible && !on_its_way && HasUnservedShares(input)) {
    why.impossible = SeveralShares();
    std::erase_if(why.diagnosis.entries,
                  [](const auto& entry) { return entry.code == codes::kSeveralShares; });
  }
  const Liftable lifts{node_of(liftable), node_of(yielding), std::move(opt_in)};
  Remedy remedy = RemedyOf(why, lifts, input);
  if (input.alternatives) why.other_remedies = OtherRemedies(remedy, why, lifts, input);
  why.remedy_code = std::move(remedy.code);
  why.remedy = std::move(remedy.text);
  return why;
}

}  // namespace nos::scheduling
