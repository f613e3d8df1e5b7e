#include "planning/explanation/holding_pods.h"

#include <algorithm>
#include <utility>

#include "scheduling/pod_state.h"

namespace nos::planning {
namespace {

// A pod that may end, and what it holds of each missing resource.
struct Candidate {
  Holder pod;
  const int64_t* held = nullptr;  // by dimension
};

class FewestOf {
 public:
  FewestOf(std::vector<Candidate> candidates, std::vector<std::pair<size_t, int64_t>> missing)
      : candidates_(std::move(candidates)), missing_(std::move(missing)) {}

  std::vector<Holder> One() const {
    for (const Candidate& one : candidates_) {
      if (IsEnough([&](size_t r) { return one.held[r]; })) return {one.pod};
    }
    return {};
  }
  std::vector<Holder> Two() const {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      for (size_t j = i + 1; j < candidates_.size(); ++j) {
        const Candidate &a = candidates_[i], &b = candidates_[j];
        if (IsEnough([&](size_t r) { return a.held[r] + b.held[r]; })) return {b.pod, a.pod};
      }
    }
    return {};
  }
  // The least important ones that are enough together, without those that are not needed.
  std::vector<Holder> Many() const {
    std::vector<Candidate> ending = candidates_;
    const auto is_enough = [&] {
      return IsEnough([&](size_t r) {
        int64_t sum = 0;
        for (const Candidate& one : ending) sum += one.held[r];
        return sum;
      });
    };
    if (!is_enough()) return {};
    for (size_t i = ending.size(); i-- > 0;) {
      const Candidate spared = ending[i];
      ending.erase(ending.begin() + static_cast<ptrdiff_t>(i));
      if (!is_enough()) ending.insert(ending.begin() + static_cast<ptrdiff_t>(i), spared);
    }
    std::vector<Holder> pods;
    for (size_t i = ending.size(); i-- > 0;) pods.push_back(ending[i].pod);
    return pods;
  }

 private:
  template <typename Held>
  bool IsEnough(Held held) const {
    return std::ranges::all_of(missing_,
                               [&](const auto& lack) { return held(lack.first) >= lack.second; });
  }

  const std::vector<Candidate> candidates_;                // least important first
  const std::vector<std::pair<size_t, int64_t>> missing_;  // dimension and amount
};

}  // namespace

HoldingPods::HoldingPods(const Translation& translation)
    : t_(translation), by_node_(translation.nodes.size()) {}

const std::vector<HoldingPods::Running>& HoldingPods::On(int node) {
  auto& known = by_node_[node];
  if (known) return *known;
  std::vector<const cluster::Pod*> pods;
  for (const auto& pod : t_.nodes[node]->pods) {
    if (!scheduling::IsTiedToNode(*pod)) pods.push_back(pod.get());
  }
  std::ranges::stable_sort(pods, {}, &cluster::Pod::priority);
  known.emplace();
  for (const cluster::Pod* pod : pods) {
    const cluster::ResourceVector requests = cluster::RequestsOf(*pod);
    std::vector<int64_t> held;
    for (const cluster::ResourceId id : t_.dimensions) held.push_back(requests.Get(id));
    known->push_back({pod->Key(), std::move(held)});
  }
  return *known;
}

std::vector<Holder> HoldingPods::Fewest(int cls, int node, const Draft& draft, size_t most,
                                        Allowance& allowance) {
  std::vector<std::pair<size_t, int64_t>> missing;
  const std::vector<int64_t>& asked = t_.problem.classes[cls].requests;
  for (size_t r = 0; r < asked.size(); ++r) {
    const int64_t lack = asked[r] - draft.FreeOf(node)[r];
    if (asked[r] > 0 && lack > 0) missing.emplace_back(r, lack);
  }
  std::vector<Candidate> candidates;
  for (const uint32_t index : draft.PodsOn(node)) {
    const PlacedPod& pod = draft.pods()[index];
    if (!pod.alive || IsMate(t_, pod.cls, cls)) continue;
    candidates.push_back(
        {{nullptr, static_cast<int>(index)}, t_.problem.classes[pod.cls].requests.data()});
  }
  for (const Running& pod : On(node)) candidates.push_back({{&pod.key}, pod.held.data()});
  const auto count = static_cast<int64_t>(candidates.size());
  const FewestOf fewest(std::move(candidates), std::move(missing));
  allowance.Spend(count / 2 + 1);
  std::vector<Holder> pods = fewest.One();
  if (!pods.empty() || most < 2) return pods;
  allowance.Spend(count * count / 8 + 1);
  pods = fewest.Two();
  if (!pods.empty() || most < 3) return pods;
  allowance.Spend(count * count / 4 + 1);
  pods = fewest.Many();
  return pods.size() <= most ? pods : std::vector<Holder>();
}

}  // namespace nos::planning
