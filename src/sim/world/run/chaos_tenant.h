// A tenant who does all that the role `edit` allows to keep what the quota of another namespace
// lends it: owners that nobody may evict elsewhere, grace periods of a year, containers that ignore
// SIGTERM, budgets of zero, one gang of everything, finalizers, forged labels, the highest
// priorities, and pods that no two are alike. And the checker of the other namespace's guarantee.
//
//   ChaosTenant tenant(world, seed, models);
//   Status started = tenant.Start(until);
//   GuaranteeChecker checker;
//   if (auto problem = checker.See(entitled, now)) ...
//
// The tenant creates no pods that name their node or another scheduler, because admission policies
// refuse these (controlplane.tenants).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "sim/world.h"

namespace nos::sim {

class ChaosTenant {
 public:
  // The namespace whose min is to hold, and the one that borrows.
  static constexpr std::string_view kGuaranteed = "team-a", kHostile = "team-b";

  ChaosTenant(World& world, uint64_t seed) : world_(world), client_(world.api()), random_(seed) {}

  // Quotas for a cluster with this much memory of GPUs (GB) and CPU (cores): nearly all of it is
  // min of kGuaranteed.
  static std::vector<PlainQuota> Quotas(int64_t memory, int64_t cpu);
  // Creates the budget and the gang, and keeps pods waiting until then. The namespaces exist.
  // `models`: not empty, of the nodes.
  Status Start(std::vector<const gpu::Model*> models, Time until);

 private:
  void Refill(Time until);
  Json Draw();
  void Own(JsonObject& meta);

  World& world_;
  kube::Client client_;
  Random random_;
  std::vector<const gpu::Model*> models_;
  int made_ = 0;
};

// A pod that is entitled to a place all the while gets a node within the longest grace period and
// a minute.
class GuaranteeChecker {
 public:
  static constexpr Duration kBound = std::chrono::seconds(300 + 60);

  // `entitled`: keys of pods that wait within min while nodes could serve them together if those
  // that borrow left. Returns the problem.
  std::optional<std::string> See(const std::vector<std::string>& entitled, Time now);

 private:
  std::map<std::string, Time> since_;
};

}  // namespace nos::sim
