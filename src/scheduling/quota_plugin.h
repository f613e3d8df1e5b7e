// The plugin that enforces elastic quotas, as the engine, preemption and explanations see it.
#pragma once

#include "quota/charge.h"
#include "quota/entitlement.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

struct QuotaOptions {
  quota::ChargeRules charges;
  quota::ReclaimRules reclaim;
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
