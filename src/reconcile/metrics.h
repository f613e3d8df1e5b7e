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

inline constexpr MetricFamily kPlanDuration{MetricFamily::Kind::kDuration,
                                            "nos_partitioner_plan_duration_seconds",
                                            "Duration of one planning run."};
inline constexpr MetricFamily kPlans{
    MetricFamily::Kind::kCounter, "nos_partitioner_plans_total",
    "Total number of plans by complete (true: proven to place as many pods as possible)."};
inline constexpr MetricFamily kPlannedPods{
    MetricFamily::Kind::kGauge, "nos_partitioner_last_plan_pods",
    "Number of pods in the last plan by outcome: placed, pending, bound (proven upper limit)."};
inline constexpr MetricFamily kGpusCut{
    MetricFamily::Kind::kCounter, "nos_partitioner_gpus_repartitioned_total",
    "Total number of GPU repartitionings requested from agents."};
inline constexpr MetricFamily kInstancesAsked{
    MetricFamily::Kind::kCounter, "nos_partitioner_instances_total",
    "Total number of MIG instances requested from agents by change (created or destroyed)."};
inline constexpr MetricFamily kAnswers{MetricFamily::Kind::kCounter,
                                       "nos_partitioner_answers_total",
                                       "Total number of plan results: applied, partial, silent "
                                       "(agent did not answer), refused (by the API server)."};
inline constexpr MetricFamily kUnhelped{
    MetricFamily::Kind::kGauge, "nos_partitioner_unplaceable_pods",
    "Number of pending pods that no repartitioning can place, by first reason.",
    "nos_partitioner_unhelped_pods"};

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

inline constexpr MetricFamily kQuotaWrites{
    MetricFamily::Kind::kCounter, "nos_operator_writes_total",
    "Total number of writes by the operator, by what (pod label, quota status) and result (ok or "
    "error)."};
inline constexpr MetricFamily kAdmissions{MetricFamily::Kind::kCounter,
                                          "nos_webhook_requests_total",
                                          "Total number of admission reviews for quotas and GPU "
                                          "requirements by result: allowed, refused, or error "
                                          "(invalid request)."};
inline constexpr MetricFamily kAdmissionDuration{MetricFamily::Kind::kDuration,
                                                 "nos_webhook_request_duration_seconds",
                                                 "Duration of one admission review."};
inline constexpr MetricFamily kCertificateEnd{
    MetricFamily::Kind::kGauge, "nos_webhook_certificate_expiration_timestamp_seconds",
    "Expiry of the webhook's certificate, in seconds since 1970.",
    "nos_webhook_certificate_end_seconds"};

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
