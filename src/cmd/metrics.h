// Metrics of this library: name and help text of each (docs/metrics.md).
#pragma once

#include "base/metrics.h"

namespace nos::cmd {

inline constexpr MetricFamily kReloads{MetricFamily::Kind::kCounter, "nos_config_reloads_total",
                                       "Number of reloads of changed files, by result."};
inline constexpr MetricFamily kBuildInfo{MetricFamily::Kind::kGauge, "nos_build_info",
                                         "Always 1, labelled with the version and the command."};
inline constexpr MetricFamily kLeader{MetricFamily::Kind::kGauge, "nos_leader",
                                      "1 while this replica is the leader, by lease."};
inline constexpr MetricFamily kTelemetryCertificateEnd{
    MetricFamily::Kind::kGauge, "nos_telemetry_certificate_expiration_timestamp_seconds",
    "Expiry of the telemetry server's own certificate, in seconds since 1970."};
inline constexpr MetricFamily kSpoolEnvelopes{
    MetricFamily::Kind::kGauge, "nos_telemetry_spool_envelopes",
    "Number of envelopes in the spool that the telemetry server has not acknowledged."};
inline constexpr MetricFamily kSpoolBytes{MetricFamily::Kind::kGauge, "nos_telemetry_spool_bytes",
                                          "Size of the spool on disk in bytes."};
inline constexpr MetricFamily kLostRecords{
    MetricFamily::Kind::kCounter, "nos_telemetry_lost_records_total",
    "Number of records dropped since the start because the spool or the disk was full or "
    "the server rejected them."};
inline constexpr MetricFamily kSpoolErrors{MetricFamily::Kind::kCounter,
                                           "nos_telemetry_spool_errors_total",
                                           "Number of failed writes to the spool since the start."};
inline constexpr MetricFamily kEventsDropped{
    MetricFamily::Kind::kCounter, "nos_telemetry_events_dropped_total",
    "Number of Kubernetes Events dropped because more occurred at once than the collector sends."};

}  // namespace nos::cmd
