// The policies that place an arriving pod: nos' packing on its own or in its scheduler, and the
// three published baselines.
//
// The baselines follow the simulator of "Beware of Fragmentation" (ATC'23), whose published results
// are the reference: integer scores from 0 to 100; ties go to the first node in a random order.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/random.h"
#include "base/status.h"
#include "scheduling/packing/node.h"
#include "scheduling/packing/packer.h"

namespace nos::study {

enum class OpenbPolicy {
  kNos,           // scheduling/packing, which adapts to the pods seen so far
  kNosScheduler,  // the same through the whole scheduler (scheduler_placer.h)
  kBestFit,       // least remaining CPU and GPU, weighted equally; the tightest device
  kRandom,        // a random node and device with capacity
  kFgd,           // least growth of fragmentation for typical pods; uses the whole trace
};

std::string_view OpenbPolicyName(OpenbPolicy policy);
// Error: kInvalid, listing the valid names.
Result<OpenbPolicy> ParseOpenbPolicy(std::string_view name);

// The decisions of one run. Placed() reports every placement, including its own.
class OpenbPlacer {
 public:
  virtual ~OpenbPlacer() = default;
  // Called once per arriving pod; nullopt if it fits nowhere.
  virtual std::optional<scheduling::packing::Choice> Choose(
      const scheduling::packing::PodKind& pod) = 0;
  virtual void Placed(const scheduling::packing::PodKind& pod,
                      const scheduling::packing::Choice& choice) = 0;
};

// `nodes` is the cluster, which the run updates; it must outlive the placer. `pods` is the whole
// trace, used by FGD only. `random` is used by the random policy.
std::unique_ptr<OpenbPlacer> MakeOpenbPlacer(OpenbPolicy policy,
                                             const std::vector<scheduling::packing::Node>& nodes,
                                             std::span<const scheduling::packing::PodKind> pods,
                                             Random random);

}  // namespace nos::study
