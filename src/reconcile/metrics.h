// Metrics of the controllers (docs/metrics.md).
#pragma once

#include "base/metrics.h"
#include "reconcile/reconciler.h"

namespace nos::reconcile {

inline constexpr MetricFamily kReconciles{
    MetricFamily::Kind::kCounter, "nos_reconcile_total",
    "Total number of reconciliations by controller and result (ok or error)."};
inline constexpr MetricFamily kReconcileDuration{MetricFamily::Kind::kDuration,
                                                 "nos_reconcile_duration_seconds",
                                                 "Duration of one reconciliation."};

// Counts and times the reconciliations of another reconciler.
class MeteredReconciler final : public Reconciler {
 public:
  // All references must outlive this.
  MeteredReconciler(Reconciler& reconciler, std::string name, Metrics& metrics)
      : reconciler_(reconciler), name_(std::move(name)), metrics_(metrics) {}
  ReconcileResult Reconcile(const std::string& key, const Listers& view, kube::Client& client,
                            const Clock& clock) override;

 private:
  Reconciler& reconciler_;
  const std::string name_;
  Metrics& metrics_;
};

}  // namespace nos::reconcile
