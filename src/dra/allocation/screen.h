// The first look at the devices of a node: which of them can serve a request at all, before
// anything is chosen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dra/allocation/prepared.h"
#include "dra/capacity/consumed.h"
#include "dra/pools/node_view.h"

namespace nos::dra {

// A device that may serve a request; or one that ends the search with a fault when it is reached.
struct Candidate {
  uint32_t device = 0;  // into NodeView::devices
  Fault fault = Fault::kNone;
};

class Screen {
 public:
  // `max_steps`: see AllocationOptions; for evaluations.
  Screen(const NodeView& view, const Features& features, const DeviceExpressions& expressions,
         int64_t max_steps)
      : view_(view),
        features_(features),
        expressions_(expressions),
        max_steps_(max_steps),
        cost_before_(expressions.cost()) {}

  // Computed at the first call for a request. Incomplete if exhausted().
  const std::vector<Candidate>& Candidates(const PreparedRequest& request);
  // The devices that "all devices" means. A fault ends the allocation.
  const std::vector<Candidate>& AllDevices(const PreparedRequest& request,
                                           std::optional<AllocationFault>& fault);
  // The capacity that the request consumes of the device.
  const Consumed& ConsumedOf(const PreparedRequest& request, const Device& device);
  // True if several claims may have the device.
  bool Sharable(const Device& device) const {
    return features_.consumable_capacity && device.allow_multiple;
  }
  // False if taints, counters, or what the node lacks, exclude the device whatever else is chosen.
  bool MayServe(const PreparedRequest& request, const ViewDevice& device) const;
  // Describes a fault of a device for the request.
  AllocationFault Describe(const PreparedRequest& request, const Candidate& candidate);

  // The evaluations so far, as steps of a search.
  int64_t steps() const {
    return static_cast<int64_t>((expressions_.cost() - cost_before_) / kCostPerStep);
  }
  // True if expressions could not be evaluated for all devices, because that took too many steps.
  // Their answers are remembered, so a later search gets further.
  bool exhausted() const { return exhausted_; }

  const NodeView& view() const { return view_; }
  const Features& features() const { return features_; }
  const DeviceExpressions& expressions() const { return expressions_; }

 private:
  // A step takes about as long as an evaluation of this cost.
  static constexpr uint64_t kCostPerStep = 16;

  bool IsFree(const PreparedRequest& request, const PoolDevice& device) const;
  Generation::Answer IsSelected(const PreparedRequest& request, const ViewDevice& device) const;
  // True: the capacity would fit if nothing used it, or a fault.
  bool CapacityFits(const PreparedRequest& request, const PoolDevice& device, bool in_use,
                    Fault& fault);
  bool CountersFit(const ViewDevice& view_device, const PoolDevice& device) const;

  const NodeView& view_;
  const Features& features_;
  const DeviceExpressions& expressions_;
  const int64_t max_steps_;
  const uint64_t cost_before_;
  bool exhausted_ = false;
  std::map<size_t, std::vector<Candidate>> candidates_, all_;  // by request
  std::map<std::pair<size_t, const void*>, Consumed> consumed_;
  // The one asked for last: most devices are like their neighbours.
  const std::pair<const std::pair<size_t, const void*>, Consumed>* last_consumed_ = nullptr;
};

}  // namespace nos::dra
