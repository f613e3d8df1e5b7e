// The plugin that enforces elastic quotas, as the engine, preemption and explanations see it.
#pragma once

#include <set>
#include <string>

#include "base/clock.h"
#include "quota/charge.h"
#include "quota/entitlement.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

struct QuotaOptions {
  quota::ChargeRules charges;
  quota::ReclaimRules reclaim;
  // Longest grace period of a pod that is evicted for a quota, in whole seconds.
  Duration max_grace = std::chrono::seconds(300);
  // No pod in these namespaces is evicted for a quota.
  std::set<std::string> exempt_namespaces = {"kube-system"};
};

class QuotaPlugin : public virtual Plugin {
 public:
  virtual const QuotaOptions& options() const = 0;
  const QuotaPlugin* AsQuotaPlugin() const final { return this; }
  // The verdict on a pod that a quota refuses.
  static Verdict VerdictOf(const quota::Refusal& refusal) {
    return Verdict::Unschedulable(codes::kQuota, refusal.Text());
  }
};

}  // namespace nos::scheduling
