// Names and help texts of the autoscaler's metrics.
#pragma once

#include "base/metrics.h"

namespace nos::controllers {

inline constexpr MetricFamily kPoolNodeCounts{
    MetricFamily::Kind::kGauge, "nos_pool_nodes",
    "Number of nodes of each NodePool by state: there, coming (requested or not ready yet), going "
    "(the pool was asked to remove it)."};
inline constexpr MetricFamily kPoolPrice{MetricFamily::Kind::kGauge, "nos_pool_price_per_hour",
                                         "Price per hour of the existing nodes of each NodePool."};
inline constexpr MetricFamily kScalingDecisions{
    MetricFamily::Kind::kCounter, "nos_autoscaler_decisions_total",
    "Total number of autoscaler decisions by action: grow, shrink, move, call-off, close, keep."};
inline constexpr MetricFamily kUnservedPods{MetricFamily::Kind::kGauge,
                                            "nos_autoscaler_unschedulable_pods",
                                            "Number of pending pods within their quotas that no "
                                            "repartitioning of existing GPUs can place.",
                                            "nos_autoscaler_unserved_pods"};
inline constexpr MetricFamily kScalingPlan{
    MetricFamily::Kind::kDuration, "nos_autoscaler_plan_duration_seconds",
    "Duration of one scaling decision.", "nos_autoscaler_plan_seconds"};

}  // namespace nos::controllers
