#include "scheduling/plugins/gpu_cutting/gpu_cutting.h"

#include <algorithm>
#include <utility>

#include "cluster/cut.h"
#include "scheduling/plugins/node_resources_fit/fit.h"

namespace nos::scheduling {
namespace {

// Only MIG instances.
struct Asked {
  cluster::ResourceVector instances;
};

cluster::ResourceVector InstancesOf(const cluster::Pod& pod) {
  cluster::ResourceVector instances;
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  for (const auto& [id, amount] : requests.entries()) {
    if (cluster::IsMigResource(id) && amount > 0) instances.Set(id, amount);
  }
  return instances;
}

Verdict Refusal(const cluster::ResourceVector& instances, const cluster::NodeInfo& node) {
  if (!cluster::MayBeCut(node)) {
    return Verdict::Unschedulable("GpusBeingCut", "node(s) had GPUs that are being cut");
  }
  Verdict verdict = Verdict::Unschedulable("", "");
  for (const Shortfall& lack : Shortfalls(instances, node.allocatable, node.requested)) {
    verdict.more.push_back({"InsufficientResource", Message(lack)});
  }
  std::ranges::sort(verdict.more, {}, &Reason::message);
  verdict.code = verdict.more.front().code;
  verdict.message = verdict.more.front().message;
  verdict.more.erase(verdict.more.begin());
  return verdict;
}

}  // namespace

bool GpuCutting::MayHelp(const ClusterEvent& event, const cluster::Pod&) const {
  switch (event.kind) {
    case ClusterEvent::Kind::kPodLeft:
    case ClusterEvent::Kind::kPodChanged:
    case ClusterEvent::Kind::kNodeAdded:
      return true;
    case ClusterEvent::Kind::kNodeChanged:
      return event.node->meta.annotations != event.node_before->meta.annotations ||
             event.node->meta.labels != event.node_before->meta.labels ||
             event.node->resting_gpus != event.node_before->resting_gpus ||
             event.node->allocatable != event.node_before->allocatable;
    default:
      return false;
  }
}

PreFilterPlugin::Outcome GpuCutting::PreFilter(const cluster::Pod& pod,
                                               const cluster::ClusterSnapshot&,
                                               CycleState& state) const {
  Asked asked{InstancesOf(pod)};
  Outcome outcome;
  outcome.skip = asked.instances.entries().empty();
  state.Set(std::move(asked));
  return outcome;
}

Verdict GpuCutting::Filter(const CycleState& state, const cluster::Pod& pod,
                           const cluster::NodeInfo& node) const {
  if (!node.gpus.managed) return Verdict::Fits();
  const auto* asked = state.Get<Asked>();
  cluster::ResourceVector computed;
  if (asked == nullptr) computed = InstancesOf(pod);
  const cluster::ResourceVector& instances = asked != nullptr ? asked->instances : computed;
  if (cluster::HasFreeInstances(node, instances) || cluster::CanCut(node, instances)) {
    return Verdict::Fits();
  }
  return Refusal(instances, node);
}

}  // namespace nos::scheduling
