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

inline constexpr MetricFamily kDeviceOperations{
    MetricFamily::Kind::kCounter, "nos_agent_device_operations_total",
    "Total number of GPU device operations by operation and result (ok or error)."};
inline constexpr MetricFamily kDeviceOperationDuration{
    MetricFamily::Kind::kDuration, "nos_agent_device_operation_duration_seconds",
    "Duration of one GPU device operation."};
inline constexpr MetricFamily kInstances{
    MetricFamily::Kind::kGauge, "nos_agent_gpu_instances",
    "Number of MIG instances of this node by gpu, model, profile and state (free or used)."};
inline constexpr MetricFamily kGpuConditions{
    MetricFamily::Kind::kGauge, "nos_agent_gpu_conditions",
    "1 for each health problem of a GPU of this node, by gpu and reason."};
inline constexpr MetricFamily kDeviceHandover{
    MetricFamily::Kind::kGauge, "nos_agent_device_handover",
    "1 while containers can be given the devices of this node, else 0, by reason of condition "
    "nos.nebuly.com/DeviceHandover."};
inline constexpr MetricFamily kClaimOperations{
    MetricFamily::Kind::kCounter, "nos_agent_claim_operations_total",
    "Total number of operations on ResourceClaims by operation (create, prepare or unprepare) and "
    "result (ok or error)."};
inline constexpr MetricFamily kClaimOperationDuration{
    MetricFamily::Kind::kDuration, "nos_agent_claim_operation_duration_seconds",
    "Duration of one operation on a ResourceClaim, by operation."};
inline constexpr MetricFamily kPreparedClaims{
    MetricFamily::Kind::kGauge, "nos_agent_prepared_claims",
    "Number of ResourceClaims whose devices containers of this node may use."};

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
