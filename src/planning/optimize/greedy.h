// Places pods class by class, each pod on the node where it costs least.
//
//   Greedy greedy(draft);
//   int n = greedy.Place(cls, count);   // as many as possible, at most count
//
// Each shape of pods has a priority queue of candidate nodes, updated from the draft's list of
// changes, so placing a pod takes time logarithmic in the number of nodes. Holds a reference to the
// draft.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

class Greedy {
 public:
  explicit Greedy(Draft& draft);
  // Gives up on a pod after `max_tries` nodes with insufficient resources.
  int Place(int cls, int count, int max_tries = std::numeric_limits<int>::max());
  // Places a pod of the class on this node. False if it does not fit.
  bool PlaceOn(int cls, int node);

 private:
  struct Entry {
    uint64_t cost = 0;
    int node = 0;
    uint32_t version = 0;
    friend bool operator>(const Entry& a, const Entry& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.node > b.node;
    }
  };
  struct Queue {
    std::vector<Entry> heap;  // least cost first
    bool built = false;
    size_t seen = 0;               // number of draft.changes() that were read
    std::vector<uint32_t> pushed;  // by node: version + 1 of its latest entry
    // Classes that found no node. Classes that request at least as much are skipped until epoch
    // changes.
    std::vector<int> failed;
    uint32_t failed_epoch = 0;
  };

  void CatchUp(int shape, Queue& queue);
  void Consider(int shape, int node, Queue& queue);
  bool KnownToFail(const Queue& queue, int cls) const;
  bool PlaceOne(int cls, Queue& queue, size_t max_tries, std::vector<Entry>& set_aside);

  Draft& draft_;
  std::vector<Queue> queues_;  // by shape
  std::vector<Device> devices_;
};

// Order in which the classes of a batch are tried.
enum class Order {
  kLargestFirst,   // largest slice, then most slots, then fewest allowed nodes
  kSmallestFirst,  // fewest slots, then least of the other resources: serves many pods
  kTightestFirst,  // fewest allowed nodes, then as kLargestFirst
  kDensestFirst,   // most value per slot
};
inline constexpr Order kOrders[] = {Order::kLargestFirst, Order::kSmallestFirst,
                                    Order::kTightestFirst, Order::kDensestFirst};

// Sorts the classes; ties by index.
std::vector<int> Ordered(const Problem& problem, std::vector<int> classes, Order order);
// Sorts by price per value, lowest first (pooled.h); ties by index.
std::vector<int> OrderedByPrice(const Problem& problem, std::vector<int> classes,
                                const std::vector<double>& prices);

}  // namespace nos::planning
