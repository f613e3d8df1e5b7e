// Metrics of the telemetry server itself. Internal to this library.
#pragma once

#include "base/metrics.h"

namespace nos::telemetryserver {

inline constexpr MetricFamily kEnvelopes{MetricFamily::Kind::kCounter,
                                         "nos_telemetry_received_envelopes_total",
                                         "Number of received envelopes, by result."};
inline constexpr MetricFamily kRecords{MetricFamily::Kind::kCounter, "nos_telemetry_records_total",
                                       "Number of records in envelopes, by result."};
inline constexpr MetricFamily kLost{
    MetricFamily::Kind::kCounter, "nos_telemetry_reported_lost_records_total",
    "Number of records that reporters dropped before sending, by cluster."};
inline constexpr MetricFamily kDroppedValues{
    MetricFamily::Kind::kCounter, "nos_telemetry_dropped_values_total",
    "Number of values dropped because a cluster has too many subjects, or "
    "it or one subject has too many metrics, by cluster.",
    "nos_telemetry_unkept_values_total"};
inline constexpr MetricFamily kCommit{MetricFamily::Kind::kDuration,
                                      "nos_telemetry_commit_duration_seconds",
                                      "Duration of a commit of envelopes to disk."};
inline constexpr MetricFamily kFlush{MetricFamily::Kind::kDuration,
                                     "nos_telemetry_flush_duration_seconds",
                                     "Duration of writing samples from memory to chunks."};
inline constexpr MetricFamily kWriteErrors{MetricFamily::Kind::kCounter,
                                           "nos_telemetry_write_errors_total",
                                           "Number of failed writes to the store."};
inline constexpr MetricFamily kDamaged{
    MetricFamily::Kind::kCounter, "nos_telemetry_damaged_envelopes_total",
    "Number of envelopes that could not be read from the journal at the start, by cluster."};
inline constexpr MetricFamily kStoreBytes{MetricFamily::Kind::kGauge, "nos_telemetry_store_bytes",
                                          "Size of the store in bytes, without free pages."};
inline constexpr MetricFamily kHeadSamples{
    MetricFamily::Kind::kGauge, "nos_telemetry_head_samples",
    "Number of samples in memory that are not written to chunks yet, by cluster."};
inline constexpr MetricFamily kShare{MetricFamily::Kind::kGauge, "nos_cluster_gpu_share",
                                     "Fraction of all GPU slots of a cluster, by share: allocated, "
                                     "used, idle, free, fragmented, stranded."};
inline constexpr MetricFamily kPods{
    MetricFamily::Kind::kGauge, "nos_cluster_pods",
    "Number of pods that request GPUs, by cluster and state: pending or running."};
inline constexpr MetricFamily kNodes{
    MetricFamily::Kind::kGauge, "nos_telemetry_nodes",
    "Number of nodes whose agents have reported GPUs, by cluster and state: reporting, or silent "
    "(no record for three reporting intervals)."};
inline constexpr MetricFamily kToSlice{
    MetricFamily::Kind::kGauge, "nos_cluster_slice_wait_seconds",
    "Time that pods were pending for a slice: median of the last hour."};
inline constexpr MetricFamily kCost{
    MetricFamily::Kind::kCounter, "nos_cost_total",
    "Cost of the GPUs of a cluster in units of the currency, by namespace and category: used, "
    "idle, "
    "unknown, free, unpartitioned, fragmented, stranded, not_reported. Increases once an hour."};
inline constexpr MetricFamily kUnpricedTime{
    MetricFamily::Kind::kCounter, "nos_cost_unpriced_gpu_hours_total",
    "GPU hours of a cluster without a price. Increases once an hour."};
inline constexpr MetricFamily kRequests{MetricFamily::Kind::kCounter,
                                        "nos_telemetry_requests_total",
                                        "Number of API requests, by route and status."};
inline constexpr MetricFamily kRequestDuration{MetricFamily::Kind::kDuration,
                                               "nos_telemetry_request_duration_seconds",
                                               "Duration of API requests, by route."};

}  // namespace nos::telemetryserver
