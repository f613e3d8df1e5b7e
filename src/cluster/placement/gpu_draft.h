// Divides the instances that a pod requests among GPUs. Internal to the instance search.
//
//   OfferBook book({one_g, three_g}, {8, 2});               // the requested kinds and numbers
//   const std::vector<size_t> gpus = {book.OffersOf(a), book.OffersOf(b)};
//   auto shares = book.Divide({8, 2}, gpus, book.SizesOn(drafts), steps);  // {4, 1} each, or none
//
// The capacity of a GPU is read from its layout table; GPUs with equal capacity are equivalent.
// Owned by one thread.
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

// The state of one GPU during the search.
struct GpuDraft {
  const Gpu* gpu = nullptr;
  gpu::Occupancy used;               // includes instances placed by the search
  std::vector<gpu::Placement> free;  // free instances
  bool MayBePartitioned() const { return !gpu->fixed && gpu->reported; }
  const gpu::Model& model() const { return used.model(); }
  // The model that the GPU can switch to, as long as nothing is placed on it; null if there is
  // none.
  const gpu::Model* Other() const;
  // Switches to Other() and drops the free instances. REQUIRES: Other().
  void Switch();
};
// nullopt if the GPU's instances overlap.
std::optional<GpuDraft> GpuDraftOf(const Gpu& gpu);
// The placements that can stay beside the used instances and beside each other. For shares, as many
// as possible; otherwise in the given order.
std::vector<gpu::Placement> Staying(gpu::Occupancy used, std::vector<gpu::Placement> placements);

// The number of instances of each kind.
using Share = std::vector<int>;

class OfferBook {
 public:
  // `asked`: upper bound on the shares of each kind that a GPU offers.
  OfferBook(std::vector<ResourceId> kinds, Share asked)
      : kinds_(std::move(kinds)), asked_(std::move(asked)) {}

  const std::vector<ResourceId>& kinds() const { return kinds_; }
  // The profile for each kind; nullopt if the model has no such profile.
  const std::vector<std::optional<gpu::ProfileId>>& ProfilesOf(const gpu::Model& model);
  // A number for the capacity beside the used instances; equal for GPUs with equal capacity.
  size_t OffersOf(const GpuDraft& draft);
  // True if a GPU with these offers can hold the share.
  bool CanHold(size_t offers, const Share& share) const;
  // The size of one instance of each kind, by slots and by compute.
  std::vector<Share> SizesOn(std::span<const GpuDraft> drafts);

  // The share of each GPU (given by its offers) such that all requested instances are placed.
  // nullopt if that is impossible, or not decided within `steps`. Subtracts the steps taken from
  // `steps`.
  std::optional<std::vector<Share>> Divide(const Share& asked, std::span<const size_t> gpus,
                                           const std::vector<Share>& sizes, int& steps) const;

  // The number of cached GPU states, for bounding memory.
  size_t size() const { return known_.size(); }

 private:
  // The layout, or the slots and shares taken; free instances by kind if the GPU must not be
  // repartitioned.
  using State = std::tuple<const gpu::Model*, const gpu::Model*, int, int, bool, Share>;
  Share FreeOf(const GpuDraft& draft);
  std::set<Share> MostOf(const gpu::Occupancy& used);
  std::vector<Share> MostOf(const GpuDraft& draft);

  std::vector<ResourceId> kinds_;
  Share asked_;
  std::map<const gpu::Model*, std::vector<std::optional<gpu::ProfileId>>> profiles_;
  std::map<State, size_t> known_;
  std::map<std::vector<Share>, size_t> numbers_;
  std::vector<std::vector<Share>> offers_;  // sorted; none within another
};

}  // namespace nos::cluster
