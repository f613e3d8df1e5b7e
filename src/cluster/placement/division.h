// How the MIG instances that a pod asks for can be divided among GPUs. Internal to cut.
//
//   OfferBook book({one_g, three_g});                       // the kinds that are asked for
//   const std::vector<size_t> gpus = {book.OffersOf(a), book.OffersOf(b)};
//   auto shares = book.Divide({8, 2}, gpus, book.Sizes(models));  // {4, 1} for each, or none
//
// What a GPU can hold is read off its layout table, and GPUs that can hold the same are alike.
// One owner thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "cluster/annotations.h"
#include "cluster/resources.h"

namespace nos::cluster {

// One GPU while places are looked for.
struct Board {
  const Gpu* gpu = nullptr;
  gpu::Occupancy used;               // with what has been placed
  std::vector<gpu::Placement> free;  // free instances
  bool MayBeCut() const { return !gpu->fixed && gpu->reported; }
  const gpu::Model& model() const { return used.model(); }
  // The model that it may have instead, as long as nothing is placed; null: none.
  const gpu::Model* Other() const;
  // Becomes that, and loses its free instances. REQUIRES: Other().
  void Switch();
};
// None: its instances contradict each other.
std::optional<Board> BoardOf(const Gpu& gpu);
// Those of the placements that can be beside what is used, and beside each other. Of shares, as
// many as can be; else what comes first.
std::vector<gpu::Placement> Staying(gpu::Occupancy used, std::vector<gpu::Placement> placements);

// So many of each kind.
using Share = std::vector<int>;

class OfferBook {
 public:
  // `asked`: no GPU offers more of a kind of share.
  OfferBook(std::vector<ResourceId> kinds, Share asked)
      : kinds_(std::move(kinds)), asked_(std::move(asked)) {}

  const std::vector<ResourceId>& kinds() const { return kinds_; }
  // Of each kind; none: the model has no such profile.
  const std::vector<std::optional<gpu::ProfileId>>& ProfilesOf(const gpu::Model& model);
  // What it can hold beside what is used: a number, equal for GPUs that can hold the same.
  size_t OffersOf(const Board& board);
  // Whether a GPU of these offers can hold all that.
  bool CanHold(size_t offers, const Share& share) const;
  // How much of a GPU one of each kind takes, by slots and by compute.
  std::vector<Share> SizesOn(std::span<const Board> boards);

  // What each GPU (its offers) is to hold, so that all is held. None: that cannot be, or more than
  // `steps` were needed to tell. Takes off `steps` what was needed.
  std::optional<std::vector<Share>> Divide(const Share& asked, std::span<const size_t> gpus,
                                           const std::vector<Share>& sizes, int& steps) const;

  // For bounds: states of GPUs known so far.
  size_t size() const { return known_.size(); }

 private:
  // The layout, or slots and shares taken; free instances by kind if it may not be cut.
  using State = std::tuple<const gpu::Model*, const gpu::Model*, int, int, bool, Share>;
  Share FreeOf(const Board& board);
  std::set<Share> MostOf(const gpu::Occupancy& used);
  std::vector<Share> MostOf(const Board& board);

  std::vector<ResourceId> kinds_;
  Share asked_;
  std::map<const gpu::Model*, std::vector<std::optional<gpu::ProfileId>>> profiles_;
  std::map<State, size_t> known_;
  std::map<std::vector<Share>, size_t> numbers_;
  std::vector<std::vector<Share>> offers_;  // none of one within another, sorted
};

}  // namespace nos::cluster
