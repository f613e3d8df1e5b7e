// What the server of telemetry tells of itself. Internal to this room.
#pragma once

#include "base/metrics.h"

namespace nos::telemetryserver {

inline constexpr MetricFamily kEnvelopes{MetricFamily::Kind::kCounter,
                                         "nos_telemetry_received_envelopes_total",
                                         "Envelopes that came, by result."};
inline constexpr MetricFamily kRecords{MetricFamily::Kind::kCounter, "nos_telemetry_records_total",
                                       "Records in envelopes, by result."};
inline constexpr MetricFamily kLost{MetricFamily::Kind::kCounter,
                                    "nos_telemetry_reported_lost_records_total",
                                    "Records that reporters say they had to drop, by cluster."};
inline constexpr MetricFamily kLeftOut{
    MetricFamily::Kind::kCounter, "nos_telemetry_unkept_values_total",
    "Values beyond the subjects that a cluster may have, and the "
    "metrics of it or of one subject, by cluster."};
inline constexpr MetricFamily kCommit{MetricFamily::Kind::kDuration,
                                      "nos_telemetry_commit_duration_seconds",
                                      "How long a commit of envelopes to disk takes."};
inline constexpr MetricFamily kFlush{MetricFamily::Kind::kDuration,
                                     "nos_telemetry_flush_duration_seconds",
                                     "How long it takes to write the samples in memory as chunks."};
inline constexpr MetricFamily kWriteErrors{MetricFamily::Kind::kCounter,
                                           "nos_telemetry_write_errors_total",
                                           "Writes to the store that failed."};
inline constexpr MetricFamily kStoreBytes{MetricFamily::Kind::kGauge, "nos_telemetry_store_bytes",
                                          "Size of the store, without what is free in it."};
inline constexpr MetricFamily kHeadSamples{MetricFamily::Kind::kGauge, "nos_telemetry_head_samples",
                                           "Samples in memory that are not written as chunks yet, "
                                           "by cluster."};
inline constexpr MetricFamily kShare{
    MetricFamily::Kind::kGauge, "nos_cluster_gpu_share",
    "Of all GPU slots of a cluster, by share: allocated, used, idle, free, fragmented, stranded."};
inline constexpr MetricFamily kPods{MetricFamily::Kind::kGauge, "nos_cluster_pods",
                                    "Pods that ask for GPUs, by cluster and state: pending or "
                                    "running."};
inline constexpr MetricFamily kToSlice{MetricFamily::Kind::kGauge, "nos_cluster_slice_wait_seconds",
                                       "How long pods waited for a slice: the median of the last "
                                       "hour."};
inline constexpr MetricFamily kRequests{MetricFamily::Kind::kCounter,
                                        "nos_telemetry_requests_total",
                                        "Requests to the API, by route and status."};
inline constexpr MetricFamily kRequestDuration{MetricFamily::Kind::kDuration,
                                               "nos_telemetry_request_duration_seconds",
                                               "How long an answer of the API takes, by route."};

}  // namespace nos::telemetryserver
