// Metrics of this library: name and help text of each (docs/metrics.md).
#pragma once

#include "base/metrics.h"

namespace nos::controllers {

// Partitioner.
inline constexpr MetricFamily kPlanDuration{MetricFamily::Kind::kDuration,
                                            "nos_partitioner_plan_duration_seconds",
                                            "Duration of one planning run."};
inline constexpr MetricFamily kPlans{
    MetricFamily::Kind::kCounter, "nos_partitioner_plans_total",
    "Total number of plans by complete (true: proven to place as many pods as possible)."};
inline constexpr MetricFamily kPlannedPods{
    MetricFamily::Kind::kGauge, "nos_partitioner_last_plan_pods",
    "Number of pods in the last plan by outcome: placed, pending, bound (proven upper limit)."};
inline constexpr MetricFamily kGpusRepartitioned{
    MetricFamily::Kind::kCounter, "nos_partitioner_gpus_repartitioned_total",
    "Total number of GPU repartitionings requested from agents."};
inline constexpr MetricFamily kInstancesAsked{
    MetricFamily::Kind::kCounter, "nos_partitioner_instances_total",
    "Total number of MIG instances requested from agents by change (created or destroyed)."};
inline constexpr MetricFamily kAnswers{MetricFamily::Kind::kCounter,
                                       "nos_partitioner_answers_total",
                                       "Total number of plan results: applied, partial, silent "
                                       "(agent did not answer), refused (by the API server)."};
inline constexpr MetricFamily kUnplaceablePods{
    MetricFamily::Kind::kGauge, "nos_partitioner_unplaceable_pods",
    "Number of pending pods that no repartitioning can place, by first reason.",
    "nos_partitioner_unhelped_pods"};

// Scheduler. Metrics with the meaning of a kube-scheduler metric have its name and labels, so that
// its dashboards and alerts work here, too.
inline constexpr MetricFamily kAttempts{
    MetricFamily::Kind::kCounter, "scheduler_schedule_attempts_total",
    "Attempts to schedule a pod, by result (scheduled, unschedulable or error) and profile."};
inline constexpr MetricFamily kAttemptDuration{
    MetricFamily::Kind::kDuration, "scheduler_scheduling_attempt_duration_seconds",
    "Latency of an attempt, including the binding, by result and profile."};
inline constexpr MetricFamily kSchedulingDuration{
    MetricFamily::Kind::kDuration, "scheduler_pod_scheduling_sli_duration_seconds",
    "Time from a pod's first attempt to its binding, by number of attempts."};
inline constexpr MetricFamily kPendingPods{
    MetricFamily::Kind::kGauge, "scheduler_pending_pods",
    "Number of pending pods, by queue: active, backoff, unschedulable, gated."};
inline constexpr MetricFamily kPreemptions{
    MetricFamily::Kind::kCounter, "scheduler_preemption_attempts_total",
    "Total number of preemption attempts for unschedulable pods."};
inline constexpr MetricFamily kVictims{MetricFamily::Kind::kSize, "scheduler_preemption_victims",
                                       "Number of victims per preemption."};

// Autoscaler.
inline constexpr MetricFamily kPoolNodeCounts{
    MetricFamily::Kind::kGauge, "nos_pool_nodes",
    "Number of nodes of each NodePool by state: there, coming (requested or not ready yet), going "
    "(the pool was asked to remove it)."};
inline constexpr MetricFamily kPoolPrice{MetricFamily::Kind::kGauge, "nos_pool_price_per_hour",
                                         "Price per hour of the existing nodes of each NodePool."};
inline constexpr MetricFamily kScalingDecisions{
    MetricFamily::Kind::kCounter, "nos_autoscaler_decisions_total",
    "Total number of autoscaler decisions by action: grow, shrink, move, call-off, close, keep."};
inline constexpr MetricFamily kUnschedulablePods{
    MetricFamily::Kind::kGauge, "nos_autoscaler_unschedulable_pods",
    "Number of pending pods within their quotas that no "
    "repartitioning of existing GPUs can place.",
    "nos_autoscaler_unserved_pods"};
inline constexpr MetricFamily kScalingPlan{
    MetricFamily::Kind::kDuration, "nos_autoscaler_plan_duration_seconds",
    "Duration of one scaling decision.", "nos_autoscaler_plan_seconds"};

// Quotas.
inline constexpr MetricFamily kQuotaWrites{
    MetricFamily::Kind::kCounter, "nos_operator_writes_total",
    "Total number of writes by the operator, by what (pod label, quota status) and result (ok or "
    "error)."};
inline constexpr MetricFamily kQuotaAmounts{
    MetricFamily::Kind::kGauge, "nos_quota_amount",
    "Amounts of each quota by resource: min, max, used, guaranteed, borrowed and lent."};
inline constexpr MetricFamily kQuotaOwed{MetricFamily::Kind::kGauge, "nos_quota_owed_pods",
                                         "Number of pending pods that min of their quota covers."};

// Webhooks.
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

}  // namespace nos::controllers
