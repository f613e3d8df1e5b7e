#include "planning/optimize/greedy.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "planning/model/packing_cost.h"

namespace nos::planning {
namespace {

constexpr size_t kMaxFailures = 8;

}  // namespace

Greedy::Greedy(Draft& draft) : draft_(draft), queues_(draft.problem().shapes.size()) {}

void Greedy::Consider(int shape, int node, Queue& queue) {
  const uint32_t version = draft_.version(node) + 1;
  if (queue.pushed[node] == version) return;
  queue.pushed[node] = version;
  if (!draft_.Covers(draft_.problem().shapes[shape].min_requests, node)) return;
  const auto cost = draft_.Find(shape, node, &devices_);
  if (!cost) return;
  const bool sliced = !draft_.problem().shapes[shape].slices.empty();
  queue.heap.push_back({sliced ? *cost : PackingCost(draft_, shape, node), node, version});
  if (queue.built) std::push_heap(queue.heap.begin(), queue.heap.end(), std::greater<>());
}

void Greedy::CatchUp(int shape, Queue& queue) {
  if (!queue.built) {
    const int nodes = static_cast<int>(draft_.problem().nodes.size());
    queue.pushed.assign(nodes, 0);
    for (int n = 0; n < nodes; ++n) Consider(shape, n, queue);
    std::make_heap(queue.heap.begin(), queue.heap.end(), std::greater<>());
    queue.built = true;
    queue.seen = draft_.changes().size();
  }
  for (; queue.seen < draft_.changes().size(); ++queue.seen) {
    Consider(shape, draft_.changes()[queue.seen], queue);
  }
}

bool Greedy::KnownToFail(const Queue& queue, int cls) const {
  if (queue.failed_epoch != draft_.epoch()) return false;
  const std::vector<int64_t>& requests = draft_.problem().classes[cls].requests;
  return std::any_of(queue.failed.begin(), queue.failed.end(), [&](int other) {
    const std::vector<int64_t>& least = draft_.problem().classes[other].requests;
    return std::equal(least.begin(), least.end(), requests.begin(), std::less_equal<>());
  });
}

int Greedy::Place(int cls, int count, int max_tries) {
  const int shape = draft_.problem().classes[cls].shape;
  Queue& queue = queues_[shape];
  if (count == 0 || KnownToFail(queue, cls)) return 0;
  std::vector<Entry> set_aside;
  int placed = 0;
  const auto tries = static_cast<size_t>(max_tries);
  while (placed < count && PlaceOne(cls, queue, tries, set_aside)) ++placed;
  if (queue.failed_epoch != draft_.epoch()) queue.failed.clear();
  queue.failed_epoch = draft_.epoch();
  const bool everywhere = set_aside.size() < tries;  // every candidate was tried
  if (placed < count && everywhere && queue.failed.size() < kMaxFailures)
    queue.failed.push_back(cls);
  for (const Entry& e : set_aside) {
    queue.heap.push_back(e);
    std::push_heap(queue.heap.begin(), queue.heap.end(), std::greater<>());
  }
  return placed;
}

bool Greedy::PlaceOne(int cls, Queue& queue, size_t max_tries, std::vector<Entry>& set_aside) {
  const int shape = draft_.problem().classes[cls].shape;
  CatchUp(shape, queue);
  while (!queue.heap.empty() && set_aside.size() < max_tries) {
    const Entry top = queue.heap.front();
    std::pop_heap(queue.heap.begin(), queue.heap.end(), std::greater<>());
    queue.heap.pop_back();
    if (top.version != draft_.version(top.node) + 1) continue;
    if (PlaceOn(cls, top.node)) return true;
    set_aside.push_back(top);
  }
  return false;
}

bool Greedy::PlaceOn(int cls, int node) {
  if (!draft_.HasResources(cls, node)) return false;
  if (!draft_.Find(draft_.problem().classes[cls].shape, node, &devices_)) return false;
  draft_.Place(cls, node, devices_);
  return true;
}

namespace {

// Sum over resources of the pod's share of the cluster's free amount, in millionths.
int64_t ShareOf(const Problem& problem, const PodClass& cls) {
  double share = 0;
  for (size_t r = 0; r < problem.dimensions; ++r) {
    if (cls.requests[r] <= 0) continue;
    share += static_cast<double>(cls.requests[r]) / (problem.total_free[r] + 1);
  }
  return static_cast<int64_t>(std::min(share, 1e6) * 1e6);
}

using OrderKey = std::tuple<double, int64_t, int64_t, int64_t, int>;

OrderKey KeyOf(const Problem& problem, int c, Order order) {
  const PodClass& cls = problem.classes[c];
  const int64_t nodes = problem.row_nodes[cls.allowed], share = ShareOf(problem, cls);
  int64_t slots = 0;
  for (const SliceCount& s : cls.slices) slots += int64_t{s.count} * problem.slices[s.slice].size;
  const int64_t largest = cls.slices.empty() ? 0 : problem.slices[cls.slices[0].slice].size;
  switch (order) {
    case Order::kSmallestFirst:
      return {0, slots, share, nodes, c};
    case Order::kTightestFirst:
      return {0, nodes, -largest, -slots, c};
    case Order::kDensestFirst: {
      const double density = static_cast<double>(cls.value) / static_cast<double>(slots + 1);
      return {-density, -slots, nodes, share, c};
    }
    case Order::kLargestFirst:
      break;
  }
  return {0, -largest, -slots, nodes, c};
}

}  // namespace

std::vector<int> Ordered(const Problem& problem, std::vector<int> classes, Order order) {
  std::vector<OrderKey> keys;
  keys.reserve(classes.size());
  for (const int c : classes) keys.push_back(KeyOf(problem, c, order));
  std::sort(keys.begin(), keys.end());
  for (size_t i = 0; i < keys.size(); ++i) classes[i] = std::get<4>(keys[i]);
  return classes;
}

std::vector<int> OrderedByPrice(const Problem& problem, std::vector<int> classes,
                                const std::vector<double>& prices) {
  const auto key = [&](int c) {
    const double value = static_cast<double>(problem.classes[c].value);
    return std::tuple(value > 0 ? prices[c] / value : 1e9, c);
  };
  std::sort(classes.begin(), classes.end(), [&](int a, int b) { return key(a) < key(b); });
  return classes;
}

}  // namespace nos::planning
