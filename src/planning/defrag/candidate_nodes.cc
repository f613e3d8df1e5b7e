#include "planning/defrag/candidate_nodes.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <span>

#include "planning/model/draft.h"
#include "planning/model/gpu_states.h"
#include "planning/planner.h"
#include "planning/translation/live_filters.h"
#include "planning/translation/translate.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using PodPtr = std::shared_ptr<const cluster::Pod>;

constexpr int64_t kWholeGpu = 1000;

PodPtr AskingNothingOfOthers(const PodPtr& pod) {
  if (pod->spread.empty() && pod->pod_affinity.empty()) return pod;
  auto alone = std::make_shared<cluster::Pod>(*pod);
  alone->spread.clear();
  alone->pod_affinity = {};
  return alone;
}

// Advances to the next set of the same size out of `all`. False at the end.
bool Next(PodSubset& set, size_t all) {
  for (size_t i = set.size(); i-- > 0;) {
    if (set[i] == all - set.size() + i) continue;
    ++set[i];
    for (size_t j = i + 1; j < set.size(); ++j) set[j] = set[j - 1] + 1;
    return true;
  }
  return false;
}

// Number of sets of `count` out of `all`; most + 1 if it exceeds `most`.
size_t SetCount(size_t all, size_t count, size_t most) {
  size_t sets = 1;
  for (size_t i = 0; i < count; ++i) {
    sets = sets * (all - i) / (i + 1);
    if (sets > most) return most + 1;
  }
  return sets;
}

}  // namespace

EvictionCandidate EvictionCandidateOf(const PodPtr& pod, const cluster::NodeInfo& node,
                                      bool over_quota) {
  static const cluster::ResourceId whole = cluster::InternResource(cluster::kWholeGpuResource);
  EvictionCandidate candidate{pod, !over_quota, 0, 0};
  const cluster::ResourceVector requests = cluster::RequestsOf(*pod);
  candidate.cpu = requests.Get(cluster::kCpu);
  if (!cluster::IsManagedOn(node, whole)) candidate.gpu = requests.Get(whole) * kWholeGpu;
  const std::string key = pod->Key();
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.pod != key) continue;
      candidate.gpu += gpu.model->profile(instance.placement.profile).slots * kWholeGpu /
                       std::max<int64_t>(gpu.model->slots(), 1);
    }
  }
  return candidate;
}

bool IsRatherMoved(const EvictionCandidate& a, const EvictionCandidate& b) {
  if (a.pod->priority != b.pod->priority) return a.pod->priority < b.pod->priority;
  if (a.in_quota != b.in_quota) return b.in_quota;
  if (a.gpu != b.gpu) return a.gpu < b.gpu;
  if (a.cpu != b.cpu) return a.cpu < b.cpu;
  return a.pod->Key() < b.pod->Key();
}

PendingPod::PendingPod(PodPtr waiting, const scheduling::FrameworkChoice& choice, bool is_live,
                       std::function<bool()> no_time)
    : pod(std::move(waiting)),
      alone(AskingNothingOfOthers(pod)),
      requests(cluster::RequestsOf(*pod)),
      frameworks(choice),
      live(is_live),
      out_of_time(std::move(no_time)) {}

bool IsRefused(const cluster::ClusterSnapshot& snapshot, const PendingPod& pod,
               const std::string& node) {
  if (!pod.live) return false;
  const scheduling::Cycle cycle = pod.frameworks.For(*pod.pod).PreFilter(*pod.pod, snapshot);
  if (!cycle.verdict.fits() || (cycle.nodes && !cycle.nodes->contains(node))) return true;
  const cluster::NodeInfo& info = *snapshot.Find(node);
  return std::ranges::any_of(cycle.filters, [&](const scheduling::FilterPlugin* filter) {
    return IsLive(*filter) && !filter->Filter(cycle.state, *pod.pod, info).fits();
  });
}

CandidateNode::CandidateNode(const cluster::ClusterSnapshot& snapshot, std::string node,
                             std::vector<EvictionCandidate> movable, const PendingPod& pod)
    : pod_(pod), name_(std::move(node)), snapshot_(snapshot), alone_(snapshot) {
  alone_.KeepNodes([&](const cluster::NodeInfo& info) { return info.node->meta.name == name_; });
  const cluster::NodeInfo& info = alone_.node(0);
  FindLacks(info);
  movable_ = std::move(movable);
  std::erase_if(movable_,
                [&](const EvictionCandidate& candidate) { return !MayHelp(info, candidate); });
  std::ranges::sort(movable_, IsRatherMoved);
}

void CandidateNode::FindLacks(const cluster::NodeInfo& node) {
  for (const auto& [id, amount] : pod_.requests.entries()) {
    const int64_t free = node.allocatable.Get(id) - node.requested.Get(id);
    if (amount > 0 && cluster::IsManagedOn(node, id)) {
      wants_slices_ = true;
    } else if (amount > 0 && amount > free) {
      lacks_.emplace_back(id, amount - free);
    }
  }
}

bool CandidateNode::MayHelp(const cluster::NodeInfo& node,
                            const EvictionCandidate& candidate) const {
  if (pod_.live) return true;
  const cluster::ResourceVector has = cluster::RequestsOf(*candidate.pod);
  const bool holds_slices = std::ranges::any_of(
      has.entries(), [&](const auto& entry) { return cluster::IsManagedOn(node, entry.first); });
  return (wants_slices_ && holds_slices) ||
         std::ranges::any_of(lacks_, [&](const auto& lack) { return has.Get(lack.first) > 0; });
}

PodSubset CandidateNode::All() const {
  PodSubset all(movable_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

MoveCost CandidateNode::CostOf(const PodSubset& gone) const {
  MoveCost cost{std::numeric_limits<int32_t>::min(), 0, 0, 0};
  for (const size_t i : gone) {
    const EvictionCandidate& candidate = movable_[i];
    cost.priority = std::max(cost.priority, candidate.pod->priority);
    cost.in_quota += candidate.in_quota ? 1 : 0;
    cost.gpu += candidate.gpu;
    cost.cpu += candidate.cpu;
  }
  return cost;
}

size_t CandidateNode::Least() const {
  size_t least = 1;
  for (const auto& [id, lack] : lacks_) {
    std::vector<int64_t> amounts;
    amounts.reserve(movable_.size());
    for (const EvictionCandidate& candidate : movable_) {
      amounts.push_back(cluster::RequestsOf(*candidate.pod).Get(id));
    }
    std::ranges::sort(amounts, std::greater());
    size_t count = 0;
    for (int64_t freed = 0; freed < lack; ++count) {
      if (count == amounts.size()) return movable_.size() + 1;
      freed += amounts[count];
    }
    least = std::max(least, count);
  }
  return least;
}

bool CandidateNode::Covers(const PodSubset& gone) const {
  return std::ranges::all_of(lacks_, [&](const auto& each) {
    const auto& [id, lack] = each;
    int64_t freed = 0;
    for (const size_t i : gone) freed += cluster::RequestsOf(*movable_[i].pod).Get(id);
    return freed >= lack;
  });
}

cluster::ClusterSnapshot CandidateNode::AloneWithout(const PodSubset& gone) const {
  cluster::ClusterSnapshot alone = alone_;
  for (const size_t i : gone)
    (void)alone.Vacate(*movable_[i].pod, name_);  // cannot fail: they run on this node
  return alone;
}

bool CandidateNode::Fits(const PodSubset& gone) const {
  if (!Covers(gone)) return false;
  const cluster::ClusterSnapshot alone = AloneWithout(gone);
  const PodPtr waiting[] = {pod_.alone};
  const PlanOptions options;
  const Translation t = Translate(alone, waiting, pod_.frameworks, options);
  const int cls = t.class_of[0];
  if (cls < 0) return false;
  GpuStates states(t.problem);
  states.StopWhen(pod_.out_of_time);
  Draft draft(t.problem, states, Draft::Free::kIgnore);
  std::vector<Device> devices;
  if (!draft.HasResources(cls, 0)) return false;
  if (!draft.Find(t.problem.classes[cls].shape, 0, &devices)) return false;
  if (!pod_.live) return true;
  cluster::ClusterSnapshot all = snapshot_;
  for (const size_t i : gone) (void)all.Vacate(*movable_[i].pod, name_);
  return !IsRefused(all, pod_, name_);
}

std::optional<std::vector<AssignedDevice>> CandidateNode::DevicesWithout(
    const PodSubset& gone) const {
  const PodPtr waiting[] = {pod_.alone};
  PlanOptions options;
  options.out_of_time = pod_.out_of_time;
  Plan plan = MakePlan(AloneWithout(gone), waiting, pod_.frameworks, options);
  if (!plan.pods[0].placed) return std::nullopt;
  return std::move(plan.pods[0].devices);
}

std::optional<std::vector<PodSubset>> CandidateNode::SetsOf(size_t count, size_t most) const {
  std::vector<PodSubset> sets;
  if (count == 0 || count > movable_.size()) return sets;
  if (SetCount(movable_.size(), count, most) > most) return std::nullopt;
  PodSubset set(count);
  std::iota(set.begin(), set.end(), size_t{0});
  do {
    if (Covers(set)) sets.push_back(set);
  } while (Next(set, movable_.size()));
  std::vector<std::pair<MoveCost, PodSubset>> order;
  order.reserve(sets.size());
  for (PodSubset& each : sets) {
    const MoveCost cost = CostOf(each);
    order.emplace_back(cost, std::move(each));
  }
  std::ranges::sort(order);
  for (size_t i = 0; i < sets.size(); ++i) sets[i] = std::move(order[i].second);
  return sets;
}

// Removes pods from the set as long as the rest is sufficient, in this order.
PodSubset CandidateNode::Without(PodSubset gone, const std::vector<size_t>& order) const {
  for (const size_t stays : order) {
    PodSubset fewer = gone;
    std::erase(fewer, stays);
    if (!fewer.empty() && Fits(fewer)) gone = std::move(fewer);
  }
  return gone;
}

PodSubset CandidateNode::Enough() const {
  std::vector<size_t> dearest = All();
  std::ranges::reverse(dearest);
  std::vector<size_t> smallest = All();
  std::ranges::stable_sort(smallest, {},
                           [&](size_t i) { return std::pair(movable_[i].gpu, movable_[i].cpu); });
  PodSubset cheap = Without(All(), dearest);
  PodSubset few = Without(All(), smallest);
  return few.size() < cheap.size() ? few : cheap;
}

}  // namespace nos::planning
