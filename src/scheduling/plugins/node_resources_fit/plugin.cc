#include "scheduling/plugins/node_resources_fit/plugin.h"

#include <algorithm>
#include <cmath>

#include "cluster/gpu_signs.h"
#include "cluster/resource_names.h"
#include "dra/context.h"
#include "scheduling/packing/view.h"
#include "scheduling/plugins/dynamic_resources/wanted_claims.h"
#include "scheduling/plugins/node_resources_fit/fit.h"
#include "scheduling/plugins/node_resources_fit/gpu_nodes.h"

namespace nos::scheduling {
namespace {

using cluster::ResourceVector;

// State of PreFilter and PreScore.
struct Asked {
  cluster::ResourceVector requests;
  // Ids of requested resources that device classes serve on nodes that do not offer them.
  std::vector<cluster::ResourceId> by_class{};
};
struct AskedForScore {
  std::vector<int64_t> amounts;
  std::shared_ptr<const dra::DeviceIndex> devices;
};

bool AsksForGpus(const ResourceVector& requests) {
  return std::ranges::any_of(requests.entries(), [](const auto& entry) {
    return entry.first == packing::WholeGpuResource() || cluster::IsSliceResource(entry.first);
  });
}

// True if `after` has more of some requested resource.
bool HasMore(const ResourceVector& requests, const ResourceVector& before,
             const ResourceVector& after) {
  return std::ranges::any_of(requests.entries(), [&](const auto& entry) {
    return entry.second > 0 && after.Get(entry.first) > before.Get(entry.first);
  });
}

// Annotations and labels describe the partitioning of GPUs in addition to allocatable.
bool HasMore(const ResourceVector& requests, const cluster::Node& before,
             const cluster::Node& after) {
  if (AsksForGpus(requests) && !cluster::HaveSameGpuSigns(before, after)) return true;
  return HasMore(requests, ResourceVector::From(before.allocatable),
                 ResourceVector::From(after.allocatable));
}

}  // namespace

NodeResourcesFit::NodeResourcesFit(const FitOptions& options)
    : options_(options), scored_(options.resources, ScoredResources::Requests::kAssumed) {}

ResourceVector NodeResourcesFit::RequestsThatCount(const cluster::Pod& pod) const {
  ResourceVector requests = cluster::RequestsOf(pod);
  if (options_.ignored_resources.empty() && options_.ignored_groups.empty()) return requests;
  const auto entries = requests.entries();
  for (const auto& [id, amount] : entries) {
    const bool ignored = id == cluster::kUnknownResource ? UnknownThatCount(pod).empty()
                                                         : IsIgnored(cluster::ResourceName(id));
    if (ignored) requests.Set(id, 0);
  }
  return requests;
}

bool NodeResourcesFit::IsIgnored(const std::string& name) const {
  return IsExtendedResource(name) &&
         (options_.ignored_resources.contains(name) ||
          options_.ignored_groups.contains(name.substr(0, name.find('/'))));
}

std::vector<std::string> NodeResourcesFit::UnknownThatCount(const cluster::Pod& pod) const {
  std::vector<std::string> names = cluster::UnknownResourcesOf(pod);
  std::erase_if(names, [this](const std::string& name) { return IsIgnored(name); });
  return names;
}

bool NodeResourcesFit::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  const ResourceVector requests = RequestsThatCount(pod);
  switch (event.kind) {
    case ClusterEvent::Kind::kPodLeft:
      return true;
    case ClusterEvent::Kind::kPodChanged:
      return HasMore(requests, cluster::RequestsOf(*event.pod),
                     cluster::RequestsOf(*event.pod_before));
    case ClusterEvent::Kind::kNodeAdded:
    case ClusterEvent::Kind::kNodeChanged:
      return Fits(requests, ResourceVector::From(event.node->allocatable), {},
                  Mig::kIgnoreWholeGpus) &&
             (event.node_before == nullptr || HasMore(requests, *event.node_before, *event.node));
    case ClusterEvent::Kind::kContext:
      return event.context_kind == dra::kClassKind && dra::AsksForExtendedResources(pod);
    default:
      return false;
  }
}

// A name without an id is one of no node. If classes serve some of those and not others, no node
// fits.
PreFilterPlugin::Outcome NodeResourcesFit::PreFilter(const cluster::Pod& pod,
                                                     const cluster::ClusterSnapshot& snapshot,
                                                     CycleState& state) const {
  Asked asked{RequestsThatCount(pod)};
  const std::vector<std::string> served = ExtendedResourcesOf(pod, snapshot.context());
  for (const std::string& name : served) {
    const cluster::ResourceId id = cluster::InternAskedResource(name);
    if (id != cluster::kUnknownResource) asked.by_class.push_back(id);
  }
  const auto is_served = [&](const std::string& name) {
    return std::ranges::binary_search(served, name);
  };
  if (!served.empty() && std::ranges::all_of(UnknownThatCount(pod), is_served)) {
    asked.by_class.push_back(cluster::kUnknownResource);
  }
  state.Set(std::move(asked));
  return {};
}

Verdict NodeResourcesFit::Filter(const CycleState& state, const cluster::Pod& pod,
                                 const cluster::NodeInfo& node) const {
  const auto* asked = state.Get<Asked>();
  cluster::ResourceVector computed;
  if (asked == nullptr) computed = RequestsThatCount(pod);
  const bool delegates = asked != nullptr && !asked->by_class.empty() &&
                         state.Get<ServesExtendedResources>() != nullptr;
  if (delegates) {
    computed = asked->requests;
    for (const cluster::ResourceId id : asked->by_class) {
      const bool known = id != cluster::kUnknownResource;
      if (!known || !dra::Offers(node, cluster::ResourceName(id))) computed.Set(id, 0);
    }
  }
  const cluster::ResourceVector& requests =
      asked != nullptr && !delegates ? asked->requests : computed;
  const Mig mig = options_.leaves_slices ? MigOn(node) : Mig::kCount;
  if (Fits(requests, node.allocatable, node.requested, mig)) return Verdict::Fits();
  const auto shortfalls = Shortfalls(requests, node.allocatable, node.requested, mig);
  Verdict verdict;
  for (const Shortfall& shortfall : shortfalls) {
    std::vector<std::string> names;
    if (shortfall.resource == cluster::kUnknownResource) names = UnknownThatCount(pod);
    for (const std::string& name : names) {
      verdict.more.push_back(Insufficient(name));
    }
    if (names.empty()) verdict.more.push_back(ReasonOf(shortfall, node));
    if (shortfall.hopeless) verdict.kind = Verdict::Kind::kUnresolvable;
    if (verdict.fits()) verdict.kind = Verdict::Kind::kUnschedulable;
  }
  std::sort(verdict.more.begin(), verdict.more.end(),
            [](const Reason& a, const Reason& b) { return a.message < b.message; });
  verdict.code = verdict.more.front().code;
  verdict.message = verdict.more.front().message;
  verdict.more.erase(verdict.more.begin());
  return verdict;
}

bool NodeResourcesFit::PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                                Nodes, CycleState& state) const {
  state.Set(AskedForScore{scored_.AskedBy(pod), snapshot.context().devices});
  return true;
}

int64_t NodeResourcesFit::Score(const CycleState& state, const cluster::Pod& pod,
                                const cluster::NodeInfo& node) const {
  const auto* asked = state.Get<AskedForScore>();
  const dra::DeviceIndex* devices = asked != nullptr ? asked->devices.get() : nullptr;
  if (options_.leaves_gpus && AreGpusScored(node, devices)) return 0;
  return asked != nullptr ? Scored(asked->amounts, node) : Scored(scored_.AskedBy(pod), node);
}

// Weighted mean of the resources' scores. Like kube-scheduler, ignores resources to which a shape
// gives 0, and rounds the mean for shapes but truncates it for the other strategies.
int64_t NodeResourcesFit::Scored(const std::vector<int64_t>& asked,
                                 const cluster::NodeInfo& node) const {
  const bool shaped = options_.strategy == FitOptions::Strategy::kRequestedToCapacityRatio;
  int64_t sum = 0, weights = 0;
  scored_.ForEach(asked, node, [&](int64_t taken, int64_t allocatable, int64_t weight) {
    const int64_t score = ScoreOf(taken, allocatable);
    if (shaped && score <= 0) return;
    sum += score * weight;
    weights += weight;
  });
  if (weights == 0) return 0;
  if (!shaped) return sum / weights;
  return std::llround(static_cast<double>(sum) / static_cast<double>(weights));
}

int64_t NodeResourcesFit::ScoreOf(__int128 taken, int64_t allocatable) const {
  const __int128 fits = std::min<__int128>(taken, allocatable);
  switch (options_.strategy) {
    case FitOptions::Strategy::kLeastAllocated:
      return static_cast<int64_t>((allocatable - fits) * kMaxScore / allocatable);
    case FitOptions::Strategy::kMaxAllocated:
      return static_cast<int64_t>(fits * kMaxScore / allocatable);
    case FitOptions::Strategy::kRequestedToCapacityRatio:
      return AtUtilization(static_cast<int64_t>(fits * 100 / allocatable));
  }
  return 0;
}

int64_t NodeResourcesFit::AtUtilization(int64_t utilization) const {
  const auto& shape = options_.shape;
  const auto after = std::ranges::lower_bound(shape, utilization, {}, &ShapePoint::utilization);
  if (after == shape.end()) return shape.back().score;
  if (after == shape.begin()) return after->score;
  const auto before = std::prev(after);
  return before->score + (after->score - before->score) * (utilization - before->utilization) /
                             (after->utilization - before->utilization);
}

}  // namespace nos::scheduling
