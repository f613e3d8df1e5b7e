// What the controllers tell of themselves in metrics (docs/metrics.md).
#pragma once

#include "base/metrics.h"
#include "reconcile/reconciler.h"

namespace nos::reconcile {

inline constexpr MetricFamily kReconciles{
    MetricFamily::Kind::kCounter, "nos_reconcile_total",
    "Times a controller looked at the world, by controller and result (ok or error)."};
inline constexpr MetricFamily kReconcileDuration{MetricFamily::Kind::kDuration,
                                                 "nos_reconcile_duration_seconds",
                                                 "How long a controller's look took."};

inline constexpr MetricFamily kPlanDuration{MetricFamily::Kind::kDuration,
                                            "nos_partitioner_plan_duration_seconds",
                                            "How long it took to make a plan."};
inline constexpr MetricFamily kPlans{
    MetricFamily::Kind::kCounter, "nos_partitioner_plans_total",
    "Plans made, by whether they are proven to place the most (complete true or false)."};
inline constexpr MetricFamily kPlannedPods{
    MetricFamily::Kind::kGauge, "nos_partitioner_last_plan_pods",
    "Pods of the last plan by outcome: placed, pending, and the bound that no plan exceeds."};
inline constexpr MetricFamily kGpusCut{MetricFamily::Kind::kCounter,
                                       "nos_partitioner_gpus_repartitioned_total",
                                       "GPUs that agents were asked to cut anew."};
inline constexpr MetricFamily kInstancesAsked{
    MetricFamily::Kind::kCounter, "nos_partitioner_instances_total",
    "MIG instances that agents were asked to make or remove, by change (created or destroyed)."};
inline constexpr MetricFamily kAnswers{MetricFamily::Kind::kCounter,
                                       "nos_partitioner_answers_total",
                                       "What became of plans, by result: applied, partial, silent "
                                       "when the agent did not answer, refused by the API server."};
inline constexpr MetricFamily kUnhelped{
    MetricFamily::Kind::kGauge, "nos_partitioner_unhelped_pods",
    "Pods that no cutting of GPUs helps now, by the first reason."};

inline constexpr MetricFamily kDeviceOperations{
    MetricFamily::Kind::kCounter, "nos_agent_device_operations_total",
    "Changes to MIG devices by operation (create, destroy, enable) and result (ok or error)."};
inline constexpr MetricFamily kDeviceOperationDuration{
    MetricFamily::Kind::kDuration, "nos_agent_device_operation_duration_seconds",
    "How long the driver took for a change."};
inline constexpr MetricFamily kInstances{
    MetricFamily::Kind::kGauge, "nos_agent_gpu_instances",
    "MIG instances on this node by gpu, model, profile and state (free or used)."};
inline constexpr MetricFamily kGpuConditions{
    MetricFamily::Kind::kGauge, "nos_agent_gpu_conditions",
    "1 for each thing that is wrong with a GPU of this node, by gpu and reason."};

inline constexpr MetricFamily kQuotaWrites{
    MetricFamily::Kind::kCounter, "nos_operator_writes_total",
    "What the operator wrote, by what (label of a pod, status of a quota) and result (ok or "
    "error)."};
inline constexpr MetricFamily kAdmissions{MetricFamily::Kind::kCounter,
                                          "nos_webhook_requests_total",
                                          "Questions of API servers about quotas and slices by "
                                          "need, by result: allowed, refused, or error "
                                          "when they could not be read."};
inline constexpr MetricFamily kAdmissionDuration{MetricFamily::Kind::kDuration,
                                                 "nos_webhook_request_duration_seconds",
                                                 "How long the answer to one took."};
inline constexpr MetricFamily kCertificateEnd{
    MetricFamily::Kind::kGauge, "nos_webhook_certificate_end_seconds",
    "When the webhook's certificate ends, in seconds since 1970."};

// Counts and times the calls of another reconciler.
class MeteredReconciler final : public Reconciler {
 public:
  // All must outlive this.
  MeteredReconciler(Reconciler& reconciler, std::string name, Metrics& metrics)
      : reconciler_(reconciler), name_(std::move(name)), metrics_(metrics) {}
  Outcome Reconcile(const std::string& key, const View& view, kube::Client& client,
                    const Clock& clock) override;

 private:
  Reconciler& reconciler_;
  const std::string name_;
  Metrics& metrics_;
};

}  // namespace nos::reconcile
