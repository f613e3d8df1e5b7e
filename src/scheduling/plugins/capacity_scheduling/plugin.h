// Elastic quotas (cluster/elastic_quota.h) are kept to, and their guarantees enforced.
//
// A framework that has it at preFilter asks quotas before any node; whoever decides has the
// accounting (Engine has a quota::Ledger), for it changes with each pod that gets a node. At
// postFilter it makes room for what quotas guarantee (reclaim.h). Name and argument are those of
// the Go system's plugin. Code: "Quota".
#pragma once

#include <string>

#include "scheduling/plugin.h"
#include "scheduling/quota_plugin.h"

namespace nos::scheduling {

// For pods that were refused for other reasons: quotas that change may let them take from others,
// and so may pods of others that are bound beyond what theirs guarantee.
class QuotaTerms final : public Plugin {
 public:
  // Whether the one may take from the quota of the other, which is bound now.
  using MayTake = std::function<bool(const cluster::Pod& pod, const cluster::Pod& bound)>;
  explicit QuotaTerms(MayTake may_take = {}) : may_take_(std::move(may_take)) {}

  std::string Name() const override { return "CapacityScheduling"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;

 private:
  MayTake may_take_;
};

class CapacityScheduling final : public PreFilterPlugin, public QuotaPlugin {
 public:
  explicit CapacityScheduling(QuotaOptions options = {}) : options_(options) {}

  std::string Name() const override { return "CapacityScheduling"; }
  const QuotaOptions& options() const override { return options_; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  // Has no say: see above.
  Outcome PreFilter(const cluster::Pod&, const cluster::ClusterSnapshot&,
                    CycleState&) const override {
    return {.verdict = Verdict::Fits(), .skip = true};
  }

 private:
  QuotaOptions options_;
};

}  // namespace nos::scheduling
