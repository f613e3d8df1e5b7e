#include "planning/optimize/improve.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "planning/optimize/greedy.h"

namespace nos::planning {
namespace {

constexpr int kMaxAttempts = 4000;
constexpr int kMaxFruitless = 1000;
constexpr size_t kMaxWaiting = 12;  // classes of pending pods tried together with those of a node
constexpr uint64_t kMaxGpus = 4;    // repartitioned together
constexpr uint64_t kMaxOfAClass = 64;  // pods placed on a node per attempt
constexpr int kMaxTries = 32;          // other nodes on which a removed pod is tried

class Improver {
 public:
  Improver(Draft& draft, const std::vector<int>& candidates,
           const std::vector<std::vector<int>>& orders)
      : draft_(draft), greedy_(draft), candidates_(candidates), random_(1) {
    for (const std::vector<int>& ordered : orders) {
      std::vector<int>& rank = rank_.emplace_back(draft.problem().classes.size());
      for (size_t i = 0; i < ordered.size(); ++i) rank[ordered[i]] = static_cast<int>(i);
    }
    FindWaiting();
  }

  bool Run(const std::function<bool()>& out_of_time) {
    int fruitless = 0;
    for (int i = 0; i < kMaxAttempts && fruitless < kMaxFruitless && !waiting_.empty(); ++i) {
      if (i % 8 == 0 && out_of_time()) return false;
      const std::vector<int64_t> before = draft_.score();
      const size_t mark = draft_.Mark();
      Attempt();
      fruitless = draft_.score() > before ? 0 : fruitless + 1;
      // Equally good plans are accepted with probability 1/2, to leave local optima.
      const bool keep =
          draft_.score() > before || (draft_.score() == before && random_.Chance(0.5));
      if (keep) {
        FindWaiting();
      } else {
        draft_.Rollback(mark);
      }
    }
    return true;
  }

 private:
  int Waiting(int cls) const { return draft_.problem().classes[cls].count - draft_.PlacedOf(cls); }
  void FindWaiting() {
    waiting_.clear();
    for (const int c : candidates_) {
      if (Waiting(c) > 0) waiting_.push_back(c);
    }
  }

  // A random node that the class may use; -1 if none was found.
  int PickNode(int cls) {
    const std::vector<bool>& allowed =
        draft_.problem().allowed[draft_.problem().classes[cls].allowed];
    for (int tries = 0; tries < 32; ++tries) {
      const int node = static_cast<int>(random_.Below(allowed.size()));
      if (allowed[node] && HasPods(node)) return node;
    }
    return -1;
  }
  bool HasPods(int node) const {
    const std::vector<uint32_t>& on = draft_.PodsOn(node);
    return std::any_of(on.begin(), on.end(), [this](uint32_t p) { return draft_.pods()[p].alive; });
  }

  // Removes the planned pods of the node, all or a random part.
  void Empty(int node, bool wholly, std::vector<int>& released) {
    const std::vector<uint32_t> on = draft_.PodsOn(node);
    for (const uint32_t p : on) {
      if (!draft_.pods()[p].alive || (!wholly && random_.Chance(0.5))) continue;
      released.push_back(draft_.pods()[p].cls);
      draft_.Remove(p);
    }
  }

  // Removes the pods on a few of the node's GPUs.
  void EmptyGpus(int node, std::vector<int>& released) {
    const ProblemNode& where = draft_.problem().nodes[node];
    uint64_t gpus = 0;
    for (uint64_t n = 1 + random_.Below(kMaxGpus); n > 0; --n) {
      gpus |= uint64_t{1} << random_.Below(std::min(where.gpu_count, 64));
    }
    const std::vector<uint32_t> on = draft_.PodsOn(node);
    for (const uint32_t p : on) {
      const PlacedPod& pod = draft_.pods()[p];
      const auto devices = draft_.DevicesOf(pod);
      const bool there = std::any_of(devices.begin(), devices.end(), [&](const Device& d) {
        return d.gpu - where.first_gpu < 64 && (gpus >> (d.gpu - where.first_gpu) & 1) != 0;
      });
      if (!pod.alive || !there) continue;
      released.push_back(pod.cls);
      draft_.Remove(p);
    }
  }

  // Repartitions a few GPUs of a node for a random mix of pods: the slices that a pod takes on one
  // GPU decide which pods fit on the others.
  void AttemptOnGpus(int node) {
    std::vector<int> released;
    EmptyGpus(node, released);
    std::vector<int> classes = released;
    for (size_t i = 0; i < std::min(kMaxWaiting, waiting_.size()); ++i) {
      const bool all = waiting_.size() <= kMaxWaiting;
      classes.push_back(waiting_[all ? i : random_.Below(waiting_.size())]);
    }
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    for (size_t i = classes.size(); i > 1; --i) {
      std::swap(classes[i - 1], classes[random_.Below(i)]);
    }
    // The first pass limits each class to a random number, so that any mix can result.
    for (const bool all : {false, true}) {
      for (const int c : classes) {
        const uint64_t most = all || random_.Chance(0.5) ? kMaxOfAClass : random_.Below(4);
        for (uint64_t n = 0; n < most && Waiting(c) > 0 && greedy_.PlaceOn(c, node); ++n) {
        }
      }
    }
  }

  void Attempt() {
    const int wanted = waiting_[random_.Below(waiting_.size())];
    const int node = PickNode(wanted);
    if (node < 0) return;
    if (draft_.problem().nodes[node].gpu_count > 0 && random_.Chance(0.5)) {
      return AttemptOnGpus(node);
    }
    std::vector<int> emptied = {node}, released;
    Empty(node, random_.Chance(0.6), released);
    if (random_.Chance(0.5)) {
      const int second = PickNode(wanted);
      if (second >= 0 && second != node) {
        Empty(second, random_.Chance(0.6), released);
        emptied.push_back(second);
      }
    }
    if (random_.Chance(0.5)) greedy_.PlaceOn(wanted, node);
    PlaceAgain(released, emptied);
  }

  // Removed pods may be placed on any node. Pending pods found all other nodes full, so they are
  // tried on the emptied nodes only.
  void PlaceAgain(const std::vector<int>& released, const std::vector<int>& emptied) {
    std::vector<int> classes = released;
    for (size_t i = 0; i < std::min(kMaxWaiting, waiting_.size()); ++i) {
      const bool all = waiting_.size() <= kMaxWaiting;
      classes.push_back(waiting_[all ? i : random_.Below(waiting_.size())]);
    }
    SortRandomly(classes);
    for (const int c : classes) {
      for (const int node : emptied) {
        while (Waiting(c) > 0 && greedy_.PlaceOn(c, node)) {
        }
      }
      if (Waiting(c) > 0 && std::find(released.begin(), released.end(), c) != released.end()) {
        greedy_.Place(c, Waiting(c), kMaxTries);
      }
    }
  }

  // Sorts by a random order, usually level by level.
  void SortRandomly(std::vector<int>& classes) {
    const std::vector<int>& rank = rank_[random_.Below(rank_.size())];
    const bool by_level = random_.Chance(0.8);
    std::sort(classes.begin(), classes.end(), [&](int a, int b) {
      const int level_a = draft_.problem().classes[a].level;
      const int level_b = draft_.problem().classes[b].level;
      if (by_level && level_a != level_b) return level_a < level_b;
      return rank[a] < rank[b];
    });
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  }

  Draft& draft_;
  Greedy greedy_;
  const std::vector<int>& candidates_;
  Random random_;
  std::vector<std::vector<int>> rank_;  // order x class
  std::vector<int> waiting_;            // classes with pending pods
};

}  // namespace

bool Improve(Draft& draft, const std::vector<int>& candidates,
             const std::vector<std::vector<int>>& orders,
             const std::function<bool()>& out_of_time) {
  return Improver(draft, candidates, orders).Run(out_of_time);
}

}  // namespace nos::planning
