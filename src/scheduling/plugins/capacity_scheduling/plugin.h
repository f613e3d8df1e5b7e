// Enforces elastic quotas (cluster/elastic_quota.h) and their guarantees.
//
// A framework with this plugin at preFilter checks quotas before any node. The caller keeps the
// accounting (Engine has a quota::Ledger), because it changes with every placed pod. At postFilter
// the caller evicts pods to satisfy quota guarantees (reclaim.h). Name and arguments are those of
// the plugin in the Go implementation of nos. Code: "Quota".
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "scheduling/plugin.h"
#include "scheduling/quota_plugin.h"

namespace nos::scheduling {

// Wakes pods that were refused for reasons other than quotas: a changed quota, or a pod bound
// beyond the guarantee of its quota, may let them evict other pods.
class QuotaTerms final : public Plugin {
 public:
  // True if `pod` may evict `bound`, a pod that was just bound, because of quotas.
  using MayTake = std::function<bool(const cluster::Pod& pod, const cluster::Pod& bound)>;
  explicit QuotaTerms(MayTake may_take = {}) : may_take_(std::move(may_take)) {}

  std::string Name() const override { return "CapacityScheduling"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;

 private:
  MayTake may_take_;
};

class CapacityScheduling final : public PreFilterPlugin, public QuotaPlugin {
 public:
  explicit CapacityScheduling(QuotaOptions options = {}) : options_(std::move(options)) {}

  std::string Name() const override { return "CapacityScheduling"; }
  const QuotaOptions& options() const override { return options_; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  // No effect; quotas are checked by the caller.
  Outcome PreFilter(const cluster::Pod&, const cluster::ClusterSnapshot&,
                    CycleState&) const override {
    return {.verdict = Verdict::Fits(), .skip = true};
  }

 private:
  QuotaOptions options_;
};

}  // namespace nos::scheduling
