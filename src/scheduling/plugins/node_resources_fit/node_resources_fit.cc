#include "scheduling/plugins/node_resources_fit/node_resources_fit.h"

#include <algorithm>

#include "scheduling/packing/view.h"
#include "scheduling/plugins/node_resources_fit/fit.h"

namespace nos::scheduling {
namespace {

struct Asked {
  cluster::ResourceVector requests;
};

// What the pre-filter left, or else `computed`, filled in.
const cluster::ResourceVector& Requests(const CycleState& state, const cluster::Pod& pod,
                                        cluster::ResourceVector& computed) {
  const auto* left = state.Get<Asked>();
  if (left != nullptr) return left->requests;
  computed = cluster::RequestsOf(pod);
  return computed;
}

// GPUs that nos may cut are counted off the node's whole ones (cluster/snapshot.h).
bool KeptForMig(const Shortfall& shortfall, const cluster::NodeInfo& node) {
  if (shortfall.resource != packing::WholeGpuResource()) return false;
  const auto told = node.node->allocatable.find(cluster::kWholeGpuResource);
  return told != node.node->allocatable.end() && told->second.Value() > shortfall.allocatable;
}

Reason ReasonOf(const Shortfall& shortfall, const cluster::NodeInfo& node) {
  const bool pods = shortfall.resource == cluster::kPods;
  std::string message = Message(shortfall);
  if (KeptForMig(shortfall, node)) message += " beside GPUs that may be cut for MIG";
  return {pods ? "TooManyPods" : "InsufficientResource", std::move(message)};
}

// 0 to kMaxScore: the share of `allocatable` that is free, or taken.
int64_t Share(FitOptions::Strategy strategy, __int128 taken, int64_t allocatable) {
  taken = std::clamp<__int128>(taken, 0, allocatable);
  const bool least = strategy == FitOptions::Strategy::kLeastAllocated;
  return static_cast<int64_t>((least ? allocatable - taken : taken) * kMaxScore / allocatable);
}

}  // namespace

NodeResourcesFit::NodeResourcesFit(const FitOptions& options) : strategy_(options.strategy) {
  for (const auto& [name, weight] : options.resources) {
    weights_.emplace_back(cluster::InternResource(name), weight);
  }
}

PreFilterPlugin::Outcome NodeResourcesFit::PreFilter(const cluster::Pod& pod,
                                                     const cluster::ClusterSnapshot&,
                                                     CycleState& state) const {
  state.Set(Asked{cluster::RequestsOf(pod)});
  return {};
}

Verdict NodeResourcesFit::Filter(const CycleState& state, const cluster::Pod& pod,
                                 const cluster::NodeInfo& node) const {
  cluster::ResourceVector computed;
  const cluster::ResourceVector& requests = Requests(state, pod, computed);
  const auto shortfalls = Shortfalls(requests, node.allocatable, node.requested);
  Verdict verdict;
  for (const Shortfall& shortfall : shortfalls) {
    verdict.more.push_back(ReasonOf(shortfall, node));
    if (shortfall.hopeless) verdict.kind = Verdict::Kind::kUnresolvable;
    if (verdict.fits()) verdict.kind = Verdict::Kind::kUnschedulable;
  }
  if (verdict.fits()) return verdict;
  std::sort(verdict.more.begin(), verdict.more.end(),
            [](const Reason& a, const Reason& b) { return a.message < b.message; });
  verdict.code = verdict.more.front().code;
  verdict.message = verdict.more.front().message;
  verdict.more.erase(verdict.more.begin());
  return verdict;
}

int64_t NodeResourcesFit::Score(const CycleState& state, const cluster::Pod& pod,
                                const cluster::NodeInfo& node) const {
  if (packing::HasGpus(node)) return 0;
  cluster::ResourceVector computed;
  const cluster::ResourceVector& requests = Requests(state, pod, computed);
  int64_t sum = 0;
  int64_t weights = 0;
  for (const auto& [id, weight] : weights_) {
    const int64_t allocatable = node.allocatable.Get(id);
    if (allocatable <= 0) continue;
    sum +=
        weight * Share(strategy_, __int128{requests.Get(id)} + node.requested.Get(id), allocatable);
    weights += weight;
  }
  return weights == 0 ? 0 : sum / weights;
}

}  // namespace nos::scheduling
