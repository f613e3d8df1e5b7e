// The body of a Prometheus remote-write request.
//
// Source: Prometheus Remote-Write 1.0 specification
// (prometheus.io/docs/specs/prw/remote_write_spec): WriteRequest {repeated TimeSeries timeseries =
// 1}, TimeSeries {repeated Label labels = 1; repeated Sample samples = 2}, Label {string name = 1;
// string value = 2}, Sample {double value = 1; int64 timestamp = 2}. Labels are sorted by name. The
// whole body is compressed as a Snappy block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "exports/series.h"

namespace nos::exports {

// Encoded labels of a series, which precede its samples.
std::string EncodeLabels(std::string_view metric_name, const Labels& labels);
// Appends a series with one sample to a WriteRequest, which consists of several series.
void AppendSeries(std::string& request, std::string_view encoded_labels, double value,
                  int64_t at_millis);
std::string Snappy(std::string_view bytes);

}  // namespace nos::exports
