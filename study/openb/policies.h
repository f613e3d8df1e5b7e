// Who decides where an arriving pod goes: nos' packing, by itself or in its scheduler, and the
// three published baselines.
//
// Baselines as in the simulator of "Beware of Fragmentation" (ATC'23), which published the results
// compared with: integer scores 0 to 100, ties to the first node of a random order.
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
  kNos,           // scheduling/packing, learning from the pods already seen
  kNosScheduler,  // the same through the whole scheduler (scheduler_placer.h)
  kBestFit,       // least CPU and GPU left, half each; the tightest device
  kRandom,        // any node, any device with room
  kFgd,           // least growth of the fragmentation that typical pods see; knows the whole trace
};

std::string_view OpenbPolicyName(OpenbPolicy policy);
// Error: kInvalid, listing the names there are.
Result<OpenbPolicy> ParseOpenbPolicy(std::string_view name);

// One run's decisions. Sees every placement, its own included, through Placed().
class OpenbPlacer {
 public:
  virtual ~OpenbPlacer() = default;
  // Called once for each arriving pod; nothing = fits nowhere.
  virtual std::optional<scheduling::packing::Choice> Choose(
      const scheduling::packing::PodKind& pod) = 0;
  virtual void Placed(const scheduling::packing::PodKind& pod,
                      const scheduling::packing::Choice& choice) = 0;
};

// `nodes` is the cluster as the run changes it, and must outlive the placer. `pods` is the whole
// trace, read by FGD only. `random` serves the random policy.
std::unique_ptr<OpenbPlacer> MakeOpenbPlacer(OpenbPolicy policy,
                                             const std::vector<scheduling::packing::Node>& nodes,
                                             std::span<const scheduling::packing::PodKind> pods,
                                             Random random);

}  // namespace nos::study
