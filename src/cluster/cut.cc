#include "cluster/cut.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "gpu/fragmentation.h"

namespace nos::cluster {
namespace {

using gpu::LayoutId;
using gpu::LayoutTable;
using gpu::PlacementId;
using gpu::ProfileId;

constexpr int kMostInstances = 512;  // no node holds more
constexpr int kMostTries = 2000;     // of one search; the first one nearly always does

using Asked = std::vector<std::pair<ResourceId, int64_t>>;

Asked InstancesIn(const ResourceVector& requests) {
  Asked asked;
  for (const auto& [id, amount] : requests.entries()) {
    if (IsMigResource(id) && amount > 0) asked.emplace_back(id, amount);
  }
  return asked;
}

// One GPU while places are looked for.
struct Board {
  const Gpu* gpu = nullptr;
  LayoutId used = LayoutTable::kIllegal;  // with what has been placed
  uint64_t free = 0;                      // placements of free instances
};

Board BoardOf(const Gpu& gpu) {
  Board board{&gpu, gpu.UsedLayout(), 0};
  for (const Instance& instance : gpu.instances) {
    const auto placement = gpu.model->layouts().Find(instance.placement);
    if (!instance.used && placement) board.free |= uint64_t{1} << *placement;
  }
  return board;
}

struct Choice {
  int changes = 0;  // instances created and destroyed
  double loss = 0;  // of potential, in GPUs
  size_t board = 0;
  PlacementId placement = 0;
  LayoutId used = 0;
  uint64_t free = 0;
};

bool Better(const Choice& a, const Choice& b) {
  return std::tuple(a.changes, a.loss, a.board, b.placement) <
         std::tuple(b.changes, b.loss, b.board, a.placement);
}

// The free instances that can stay beside the used ones.
uint64_t Staying(const LayoutTable& table, LayoutId used, uint64_t free) {
  uint64_t staying = 0;
  for (; free != 0; free &= free - 1) {
    const auto placement = static_cast<PlacementId>(std::countr_zero(free));
    const LayoutId with = table.Add(used, placement);
    if (with == LayoutTable::kIllegal) continue;
    used = with;
    staying |= uint64_t{1} << placement;
  }
  return staying;
}

class Search {
 public:
  Search(const NodeInfo& node, const Asked& asked) {
    for (const Gpu& gpu : node.gpus.gpus) {
      boards_.push_back(BoardOf(gpu));
      if (boards_.back().used == LayoutTable::kIllegal) boards_.pop_back();
      const auto [plain, fresh] = plain_.try_emplace(gpu.model);
      if (fresh) plain->second = gpu::PlainProfiles(*gpu.model);
    }
    for (const auto& [id, amount] : asked) {
      for (int64_t i = 0; i < amount && wanted_.size() <= kMostInstances; ++i) {
        wanted_.push_back(id);
      }
    }
    std::ranges::stable_sort(
        wanted_, [&](ResourceId a, ResourceId b) { return a != b && SlotsOf(a) > SlotsOf(b); });
  }

  std::optional<std::vector<PromisedInstance>> Run() {
    if (wanted_.size() > kMostInstances || !Place(0)) return std::nullopt;
    return found_;
  }

 private:
  // The large ones go first: what is left serves the small ones rather than the other way round.
  int SlotsOf(ResourceId id) const {
    for (const Board& board : boards_) {
      const auto profile = board.gpu->model->FindProfile(ResourceName(id));
      if (profile) return board.gpu->model->profile(*profile).slots;
    }
    return 0;
  }

  bool Place(size_t next) {
    if (next == wanted_.size()) return true;
    for (const Choice& choice : Choices(wanted_[next])) {
      if (++tries_ > kMostTries) return false;
      Board& board = boards_[choice.board];
      const Board before = board;
      board.used = choice.used;
      board.free = choice.free;
      found_.push_back(
          {board.gpu->index, board.gpu->model->layouts().placements()[choice.placement]});
      if (Place(next + 1)) return true;
      found_.pop_back();
      board = before;
    }
    return false;
  }

  std::vector<Choice> Choices(ResourceId id) const {
    std::vector<Choice> choices;
    for (size_t i = 0; i < boards_.size(); ++i) {
      const Board& board = boards_[i];
      const auto profile = board.gpu->model->FindProfile(ResourceName(id));
      if (!profile) continue;
      const LayoutTable& table = board.gpu->model->layouts();
      for (uint64_t left = table.Addable(board.used) & table.PlacementsOf(*profile); left != 0;
           left &= left - 1) {
        const auto placement = static_cast<PlacementId>(std::countr_zero(left));
        if (auto choice = ChoiceFor(i, placement)) choices.push_back(*choice);
      }
    }
    std::ranges::sort(choices, Better);
    return choices;
  }

  std::optional<Choice> ChoiceFor(size_t i, PlacementId placement) const {
    const Board& board = boards_[i];
    const LayoutTable& table = board.gpu->model->layouts();
    const uint64_t bit = uint64_t{1} << placement;
    const bool there = (board.free & bit) != 0;
    if (!there && (board.gpu->fixed || !board.gpu->reported)) return std::nullopt;
    Choice choice{0, 0, i, placement, table.Add(board.used, placement), 0};
    const uint64_t others = board.free & ~bit;
    choice.free = there ? others : Staying(table, choice.used, others);
    choice.changes = (there ? 0 : 1) + std::popcount(others & ~choice.free);
    choice.loss = LossOf(*board.gpu->model, board.used, choice.used);
    return choice;
  }

  double LossOf(const gpu::Model& model, LayoutId before, LayoutId after) const {
    const std::vector<ProfileId>& plain = plain_.at(&model);
    const auto potential = [&](LayoutId layout) {
      return static_cast<double>(gpu::Potential(model, plain, layout));
    };
    return (potential(before) - potential(after)) / potential(LayoutTable::kEmpty);
  }

  std::vector<Board> boards_;
  std::map<const gpu::Model*, std::vector<ProfileId>> plain_;
  std::vector<ResourceId> wanted_;
  std::vector<PromisedInstance> found_;
  int tries_ = 0;
};

// How many instances of one kind alone fit.
int64_t Capacity(const NodeInfo& node, ResourceId id) {
  int64_t capacity = 0;
  for (const Gpu& gpu : node.gpus.gpus) {
    const auto profile = gpu.model->FindProfile(ResourceName(id));
    const LayoutId used = gpu.UsedLayout();
    if (!profile || used == LayoutTable::kIllegal) continue;
    if (!gpu.fixed && gpu.reported) {
      capacity += gpu.model->layouts().Copies(used, *profile);
      continue;
    }
    capacity += std::ranges::count_if(gpu.instances, [&](const Instance& instance) {
      return !instance.used && instance.placement.profile == *profile;
    });
  }
  return capacity;
}

}  // namespace

bool MayBeCut(const NodeInfo& node) {
  if (!node.gpus.managed) return false;
  const bool ours =
      std::ranges::any_of(node.pods, [](const auto& pod) { return !pod->promised.empty(); });
  return ours || SpecPlan(*node.node) == StatusPlan(*node.node);
}

bool HasFreeInstances(const NodeInfo& node, const ResourceVector& requests) {
  return std::ranges::all_of(requests.entries(), [&](const auto& entry) {
    const auto& [id, amount] = entry;
    return !IsMigResource(id) || amount <= 0 ||
           amount <= node.allocatable.Get(id) - node.requested.Get(id);
  });
}

std::optional<std::vector<PromisedInstance>> FindCut(const NodeInfo& node,
                                                     const ResourceVector& requests) {
  if (!MayBeCut(node)) return std::nullopt;
  return Search(node, InstancesIn(requests)).Run();
}

bool CanCut(const NodeInfo& node, const ResourceVector& requests) {
  if (!MayBeCut(node)) return false;
  const Asked asked = InstancesIn(requests);
  if (!std::ranges::all_of(
          asked, [&](const auto& one) { return one.second <= Capacity(node, one.first); })) {
    return false;
  }
  return asked.size() <= 1 || Search(node, asked).Run().has_value();
}

}  // namespace nos::cluster
