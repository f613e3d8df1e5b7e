#include "scheduling/plugins/gpu_partitioning/plugin.h"
#include "scheduling/several_shares.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "cluster/gpu_signs.h"
#include "cluster/instance_search.h"
#include "scheduling/plugins/node_resources_fit/fit.h"

namespace nos::scheduling {
namespace {

// Requests for slices and whole GPUs. The finder caches results per node. All cycle states copied
// from one pre-filter share it, from any thread.
struct Asked {
  explicit Asked(cluster::ResourceVector requests)
      : instances(std::move(requests)), finder(std::make_shared<Finder>(instances)) {}

  struct Finder {
    explicit Finder(const cluster::ResourceVector& requests) : search(requests) {}
    bool CanProvide(const cluster::NodeInfo& node) {
      const std::lock_guard lock(mutex);
      return search.Can(node);
    }
    std::mutex mutex;
    cluster::InstanceFinder search;
  };
  cluster::ResourceVector instances;
  std::shared_ptr<Finder> finder;
};

bool IsOfGpus(cluster::ResourceId id) {
  static const cluster::ResourceId kWhole = cluster::InternResource(cluster::kWholeGpuResource);
  return cluster::IsSliceResource(id) || id == kWhole;
}

cluster::ResourceVector InstancesOf(const cluster::Pod& pod) {
  cluster::ResourceVector instances;
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  for (const auto& [id, amount] : requests.entries()) {
    if (IsOfGpus(id) && amount > 0) instances.Set(id, amount);
  }
  return instances;
}

// True for slices and whole GPUs: both can be repartitioned once no pod uses them.
bool HeldGpus(const cluster::Pod& pod) { return !InstancesOf(pod).entries().empty(); }

Verdict Refusal(const cluster::ResourceVector& instances, const cluster::NodeInfo& node) {
  if (!cluster::MayBePartitioned(node)) {
    return Verdict::Unschedulable(codes::kGpusBeingPartitioned,
                                  "node(s) had GPUs that are being partitioned");
  }
  Verdict verdict = Verdict::Unschedulable("", "");
  for (const Shortfall& lack : Shortfalls(instances, node.allocatable, node.requested)) {
    verdict.more.push_back(Insufficient(lack.resource));
  }
  std::ranges::sort(verdict.more, {}, &Reason::message);
  verdict.code = verdict.more.front().code;
  verdict.message = verdict.more.front().message;
  verdict.more.erase(verdict.more.begin());
  return verdict;
}

// Only for nodes that were managed before; other nodes are never refused here.
bool MayHaveMore(const cluster::Node& before, const cluster::Node& after) {
  return cluster::IsManaged(before) &&
         (!cluster::HaveSameGpuSigns(before, after) || after.resting_gpus != before.resting_gpus ||
          after.allocatable != before.allocatable);
}

}  // namespace

bool GpuPartitioning::MayHelp(const ClusterEvent& event, const cluster::Pod&) const {
  switch (event.kind) {
    case ClusterEvent::Kind::kPodLeft:
    case ClusterEvent::Kind::kPodChanged:
      return event.pod_before == nullptr || HeldGpus(*event.pod_before);
    case ClusterEvent::Kind::kNodeAdded:
      return true;
    case ClusterEvent::Kind::kNodeChanged:
      return MayHaveMore(*event.node_before, *event.node);
    default:
      return false;
  }
}

PreFilterPlugin::Outcome GpuPartitioning::PreFilter(const cluster::Pod& pod,
                                                    const cluster::ClusterSnapshot&,
                                                    CycleState& state) const {
  Asked asked{InstancesOf(pod)};
  Outcome outcome;
  outcome.skip = asked.instances.entries().empty();
  state.Set(std::move(asked));
  return outcome;
}

Verdict GpuPartitioning::Filter(const CycleState& state, const cluster::Pod& pod,
                                const cluster::NodeInfo& node) const {
  if (!node.gpus.managed) return Verdict::Fits();
  if (AsksForSeveralShares(pod)) {
    return Verdict::Unresolvable(SeveralShares());
  }
  const auto* left = state.Get<Asked>();
  std::optional<Asked> computed;
  const Asked& asked = left != nullptr ? *left : computed.emplace(InstancesOf(pod));
  if (cluster::HasFreeInstances(node, asked.instances) || asked.finder->CanProvide(node)) {
    return Verdict::Fits();
  }
  return Refusal(asked.instances, node);
}

}  // namespace nos::scheduling
