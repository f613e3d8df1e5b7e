#include "planning/explanation/holding_pods.h"

#include <algorithm>

#include "scheduling/pod_state.h"

namespace nos::planning {
namespace {

template <typename Missing, typename Held>
bool IsEnough(const Missing& missing, Held held) {
  return std::ranges::all_of(missing,
                             [&](const auto& lack) { return held(lack.first) >= lack.second; });
}

}  // namespace

HoldingPods::HoldingPods(const Translation& translation)
    : t_(translation), by_node_(translation.nodes.size()) {}

void HoldingPods::FindRunning(int node, OfNode& here) const {
  std::vector<const cluster::Pod*> pods;
  for (const auto& pod : t_.nodes[node]->pods) {
    if (!scheduling::IsTiedToNode(*pod)) pods.push_back(pod.get());
  }
  std::ranges::stable_sort(pods, {}, &cluster::Pod::priority);
  for (const cluster::Pod* pod : pods) {
    const cluster::ResourceVector requests = cluster::RequestsOf(*pod);
    std::vector<int64_t> held;
    for (const cluster::ResourceId id : t_.dimensions) held.push_back(requests.Get(id));
    here.running.push_back({pod->Key(), std::move(held)});
  }
}

void HoldingPods::FindCandidates(int node, const Draft& draft, OfNode& here) const {
  here.version = draft.version(node);
  here.candidates.clear();
  for (const uint32_t index : draft.PodsOn(node)) {
    const PlacedPod& pod = draft.pods()[index];
    if (!pod.alive) continue;
    here.candidates.push_back(
        {{nullptr, static_cast<int>(index)}, pod.cls, t_.problem.classes[pod.cls].requests.data()});
  }
  for (const Running& pod : here.running) {
    here.candidates.push_back({{&pod.key}, -1, pod.held.data()});
  }
  here.first.assign(t_.dimensions.size(), 0);
  here.second.assign(t_.dimensions.size(), 0);
  for (const Candidate& one : here.candidates) {
    for (size_t r = 0; r < here.first.size(); ++r) {
      here.second[r] = std::max(here.second[r], std::min(here.first[r], one.held[r]));
      here.first[r] = std::max(here.first[r], one.held[r]);
    }
  }
}

const HoldingPods::OfNode& HoldingPods::At(int node, const Draft& draft, Allowance& allowance) {
  std::optional<OfNode>& known = by_node_[node];
  const bool fresh = !known;
  if (fresh) FindRunning(node, known.emplace());
  if (fresh || known->version != draft.version(node)) FindCandidates(node, draft, *known);
  if (fresh) allowance.Spend(static_cast<int64_t>(known->candidates.size()) * 10);
  return *known;
}

std::vector<Holder> HoldingPods::One(const Candidates& candidates, const Missing& missing) {
  for (const Candidate* one : candidates) {
    if (IsEnough(missing, [&](size_t r) { return one->held[r]; })) return {one->pod};
  }
  return {};
}

std::vector<Holder> HoldingPods::Two(const Candidates& candidates, const Missing& missing) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    for (size_t j = i + 1; j < candidates.size(); ++j) {
      const Candidate &a = *candidates[i], &b = *candidates[j];
      if (IsEnough(missing, [&](size_t r) { return a.held[r] + b.held[r]; })) {
        return {b.pod, a.pod};
      }
    }
  }
  return {};
}

std::vector<Holder> HoldingPods::Many(Candidates ending, const Missing& missing) {
  std::vector<int64_t> left;  // what the ending pods hold beyond `missing`
  for (const auto& [r, amount] : missing) {
    left.push_back(-amount);
    for (const Candidate* one : ending) left.back() += one->held[r];
  }
  if (std::ranges::any_of(left, [](int64_t amount) { return amount < 0; })) return {};
  for (size_t i = ending.size(); i-- > 0;) {
    bool spared = true;
    for (size_t m = 0; m < missing.size(); ++m) {
      spared = spared && ending[i]->held[missing[m].first] <= left[m];
    }
    if (!spared) continue;
    for (size_t m = 0; m < missing.size(); ++m) left[m] -= ending[i]->held[missing[m].first];
    ending.erase(ending.begin() + static_cast<ptrdiff_t>(i));
  }
  std::vector<Holder> pods;
  for (size_t i = ending.size(); i-- > 0;) pods.push_back(ending[i]->pod);
  return pods;
}

std::vector<Holder> HoldingPods::Fewest(int cls, int node, const Draft& draft, size_t most,
                                        Allowance& allowance) {
  const OfNode& here = At(node, draft, allowance);
  Missing missing;
  const std::vector<int64_t>& asked = t_.problem.classes[cls].requests;
  bool by_one = true, by_two = most >= 2;
  for (size_t r = 0; r < asked.size(); ++r) {
    const int64_t lack = asked[r] - draft.FreeOf(node)[r];
    if (asked[r] <= 0 || lack <= 0) continue;
    missing.emplace_back(r, lack);
    by_one = by_one && here.first[r] >= lack;
    by_two = by_two && here.first[r] + here.second[r] >= lack;
  }
  if (!by_one && !by_two && most <= 2) return {};
  Candidates candidates;
  candidates.reserve(here.candidates.size());
  for (const Candidate& one : here.candidates) {
    if (one.cls < 0 || !IsMate(t_, one.cls, cls)) candidates.push_back(&one);
  }
  const auto count = static_cast<int64_t>(candidates.size());
  allowance.Spend(count + 5);
  if (by_one) {
    if (auto pods = One(candidates, missing); !pods.empty()) return pods;
  }
  if (by_two) {
    allowance.Spend(count * count / 8);
    if (auto pods = Two(candidates, missing); !pods.empty()) return pods;
  }
  if (most <= 2) return {};
  std::vector<Holder> pods = Many(std::move(candidates), missing);
  return pods.size() <= most ? pods : std::vector<Holder>();
}

}  // namespace nos::planning
