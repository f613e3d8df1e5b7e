// Metrics of this library: name and help text of each (docs/metrics.md).
#pragma once

#include "base/metrics.h"

namespace nos::agent {

// GPUs.
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

// The agent's own device plugin.
inline constexpr MetricFamily kHandover{
    MetricFamily::Kind::kGauge, "nos_agent_device_handover",
    "1 while containers can be given the devices of this node, else 0, by reason of condition "
    "nos.nebuly.com/DeviceHandover."};
inline constexpr MetricFamily kRegistrations{
    MetricFamily::Kind::kCounter, "nos_agent_device_plugin_registrations_total",
    "Number of registrations with the kubelet since the start, by resource and result (ok or "
    "error)."};
inline constexpr MetricFamily kAllocations{
    MetricFamily::Kind::kCounter, "nos_agent_device_plugin_allocations_total",
    "Number of Allocate calls since the start, by resource and result (ok or refused)."};
inline constexpr MetricFamily kConnected{
    MetricFamily::Kind::kGauge, "nos_agent_device_plugin_connected",
    "1 while the kubelet watches the device list, by resource."};

// ResourceClaims.
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

}  // namespace nos::agent
