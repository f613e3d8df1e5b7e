#include "planning/optimize/realise.h"

#include <algorithm>

#include "planning/model/pack.h"
#include "planning/optimize/greedy.h"

namespace nos::planning {
namespace {

std::vector<SliceCount> TotalSlices(const Problem& problem, const std::vector<int>& pods) {
  std::vector<int> total(problem.slices.size());
  for (const int cls : pods) {
    for (const SliceCount& s : problem.classes[cls].slices) total[s.slice] += s.count;
  }
  std::vector<SliceCount> need;
  for (size_t s = 0; s < total.size(); ++s) {
    if (total[s] > 0) need.push_back({static_cast<uint16_t>(s), static_cast<uint16_t>(total[s])});
  }
  return need;
}

// Appends to `pool` the devices of a node's GPUs when each serves `counts` slices.
bool ArrangeDevices(const Draft& draft, int node, const std::vector<Counts>& counts,
                    std::vector<Device>& pool) {
  const ProblemNode& where = draft.problem().nodes[node];
  for (int i = 0; i < where.gpu_count; ++i) {
    const int gpu = where.first_gpu + i;
    const auto& arranged = draft.states().Arrange(draft.gpu(gpu), counts[i]);
    if (!arranged) return false;
    for (const Taking& taking : arranged->takings) pool.push_back({taking, gpu});
  }
  return true;
}

// Assigns the devices to the pods. REQUIRES: `pool` contains exactly the requested slices.
void Deal(Draft& draft, int node, const std::vector<int>& pods, std::vector<Device> pool) {
  for (const int cls : pods) {
    std::vector<Device> devices;
    if (!draft.problem().nodes[node].slices_as_resources) {
      for (const SliceCount& want : draft.problem().classes[cls].slices) {
        for (int n = 0; n < want.count; ++n) {
          const auto it = std::find_if(pool.begin(), pool.end(),
                                       [&](const Device& d) { return d.slice == want.slice; });
          devices.push_back(*it);
          pool.erase(it);
        }
      }
    }
    draft.Place(cls, node, devices);
  }
}

// Places one pod after the other, largest first: often as good, and uses fewer GPUs.
bool PlaceOneByOne(Draft& draft, int node, const std::vector<int>& pods) {
  const size_t mark = draft.Mark();
  std::vector<Device> devices;
  for (const int cls : pods) {
    if (draft.HasResources(cls, node) &&
        draft.Find(draft.problem().classes[cls].shape, node, &devices)) {
      draft.Place(cls, node, devices);
      continue;
    }
    draft.Rollback(mark);
    return false;
  }
  return true;
}

bool ResourcesSuffice(const Draft& draft, int node, const std::vector<int>& pods) {
  const Problem& problem = draft.problem();
  std::vector<int64_t> sum(problem.dimensions);
  for (const int cls : pods) {
    for (size_t r = 0; r < sum.size(); ++r) sum[r] += problem.classes[cls].requests[r];
  }
  return draft.Covers(sum, node);
}

}  // namespace

bool PlaceTogether(Draft& draft, int node, const std::vector<int>& pods) {
  const std::vector<int> ordered = Ordered(draft.problem(), pods, Order::kLargestFirst);
  if (PlaceOneByOne(draft, node, ordered)) return true;
  if (!ResourcesSuffice(draft, node, pods)) return false;
  const ProblemNode& where = draft.problem().nodes[node];
  std::vector<Device> pool;
  if (!where.slices_as_resources) {
    std::vector<GpuStateId> gpus;
    gpus.reserve(where.gpu_count);
    for (int i = 0; i < where.gpu_count; ++i) gpus.push_back(draft.gpu(where.first_gpu + i));
    const auto packed = PackSlices(draft.states().sets(), gpus, TotalSlices(draft.problem(), pods),
                                   draft.problem().slices.size(), draft.states().stop());
    if (!packed.counts || !ArrangeDevices(draft, node, *packed.counts, pool)) return false;
  }
  Deal(draft, node, ordered, std::move(pool));
  return true;
}

namespace {

// The pods of a draft on a node, and for each GPU the number of each slice.
struct Load {
  std::vector<int> pods;
  std::vector<Counts> counts;
};

Load LoadOf(const Draft& draft, int node) {
  const ProblemNode& where = draft.problem().nodes[node];
  Load load{{}, std::vector<Counts>(where.gpu_count, Counts(draft.problem().slices.size()))};
  for (const uint32_t index : draft.PodsOn(node)) {
    const PlacedPod& pod = draft.pods()[index];
    if (!pod.alive) continue;
    load.pods.push_back(pod.cls);
    for (const Device& d : draft.DevicesOf(pod)) ++load.counts[d.gpu - where.first_gpu][d.slice];
  }
  return load;
}

// Keeps the assignment of slices to GPUs and only optimizes starts: always possible.
bool PlaceAsBefore(Draft& draft, int node, const Load& load) {
  std::vector<Device> pool;
  if (!ArrangeDevices(draft, node, load.counts, pool)) return false;
  Deal(draft, node, load.pods, std::move(pool));
  return true;
}

// Number of the GPU's free instances that the draft destroys.
int DestroyedOn(const Draft& draft, int gpu) {
  if (draft.CreatedOn(gpu) == 0) return 0;
  return draft.states().Destroyed(draft.Original(gpu), draft.gpu(gpu), draft.CreatedOn(gpu));
}

bool Destroys(const Draft& draft, int node) {
  const ProblemNode& where = draft.problem().nodes[node];
  for (int i = 0; i < where.gpu_count; ++i) {
    if (DestroyedOn(draft, where.first_gpu + i) > 0) return true;
  }
  return false;
}

// True if a GPU could serve the same slices with fewer changes.
bool CanBeBetter(const Draft& draft, int node, const Load& load) {
  const ProblemNode& where = draft.problem().nodes[node];
  for (int i = 0; i < where.gpu_count; ++i) {
    const int gpu = where.first_gpu + i, destroyed = DestroyedOn(draft, gpu);
    if (destroyed == 0) continue;
    const auto& arranged = draft.states().Arrange(draft.Original(gpu), load.counts[i]);
    if (arranged && arranged->changes < draft.CreatedOn(gpu) + destroyed) return true;
  }
  return false;
}

}  // namespace

void Rearrange(Draft& draft, int node) {
  if (!Destroys(draft, node)) return;
  const Load load = LoadOf(draft, node);
  if (!CanBeBetter(draft, node, load)) return;
  const ChangeCost before = draft.CostOn(node);
  const size_t mark = draft.Mark();
  const std::vector<uint32_t> on = draft.PodsOn(node);
  for (const uint32_t index : on) {
    if (draft.pods()[index].alive) draft.Remove(index);
  }
  if (!PlaceAsBefore(draft, node, load) || draft.CostOn(node) >= before) draft.Rollback(mark);
}

Draft Realise(const Draft& tight) {
  Draft draft(tight.problem(), tight.states(), Draft::Free::kKeep);
  for (int node = 0; node < static_cast<int>(tight.problem().nodes.size()); ++node) {
    std::vector<int> pods;
    for (const uint32_t index : tight.PodsOn(node)) {
      if (tight.pods()[index].alive) pods.push_back(tight.pods()[index].cls);
    }
    if (pods.empty()) continue;
    const std::vector<int> ordered = Ordered(tight.problem(), pods, Order::kLargestFirst);
    if (!PlaceOneByOne(draft, node, ordered)) PlaceAsBefore(draft, node, LoadOf(tight, node));
  }
  return draft;
}

}  // namespace nos::planning
