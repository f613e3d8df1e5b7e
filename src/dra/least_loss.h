// Tries the devices first that cost least of what GPUs can still serve: the rule by which nos
// places MIG instances (gpu/fragmentation.h), for devices of NVIDIA's driver.
//
// A device's loss is the potential that its GPU loses, as a fraction of that of an empty GPU.
// Order: least loss, the GPU with the fewest free slots, the most instances, the layout with the
// lowest number, the highest start, the least memory left of a device that claims share,
// kube-scheduler's order. Whole GPUs lose everything that is left of them; those that are empty
// come first. Shares of what claims share already lose nothing.
//
// All other devices keep their places in kube-scheduler's order: of other drivers, of models,
// profiles and starts that the catalogue does not know, of GPUs with such an instance in use.
#pragma once

#include <memory>

#include "dra/allocator.h"
#include "gpu/catalogue.h"

namespace nos::dra {

class GpuReader;

// Not thread-safe: fills caches. The catalogue must outlive it.
class LeastLoss final : public DeviceRanking {
 public:
  explicit LeastLoss(const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin());

  void Rank(const NodeView& view, std::span<const DeviceChoice> chosen,
            std::vector<DeviceChoice>& devices) const override;
  DeviceLoss LossOf(const NodeView& view, std::span<const DeviceChoice> chosen) const override;
  // True if some device of the node is ranked.
  bool Ranks(const NodeView& view) const;

 private:
  std::shared_ptr<GpuReader> reader_;
};

}  // namespace nos::dra
