// Exports samples by Prometheus remote-write (protocol 1.0).
//
// Samples of one subject go through one shard, in order; shards send their requests in parallel.
// Meaning of an answer:
//   2xx                                     accepted
//   401, 403, 404, 407, 408, 425, 429, 5xx  retry: the answer says nothing about the samples
//   other 4xx                               rejected: the request is split in two and sent again,
//   so
//                                           that a few invalid samples do not block the others;
//                                           pieces that are still rejected are dropped and counted
// Samples older than the last one of their subject are dropped and counted, because receivers
// reject them. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "exports/destination.h"
#include "exports/exporter.h"
#include "exports/series.h"
#include "kube/transport.h"

namespace nos::exports {

struct RemoteWriteOptions {
  std::string metrics;  // MetricFilter
  Labels labels;        // added to all series
  size_t shards = 4;
  size_t samples_per_request = 2000;
};

class RemoteWrite final : public Sink {
 public:
  static constexpr const char* kName = "remoteWrite";

  // All arguments must outlive this object.
  RemoteWrite(RemoteWriteOptions options, const Destination& destination,
              kube::Transport& transport, Metrics& metrics);

  // Records the GPUs and slices that exist before the first row.
  void Know(const std::string& cluster, const telemetryserver::State& state) {
    names_.Follow(cluster, state);
  }
  void Take(std::span<const telemetryserver::Journaled> rows) override;
  Status Send(Time now, Duration& wish) override;

 private:
  struct Piece {
    std::string body;            // WriteRequest
    std::vector<size_t> begins;  // offset of each series
    int splits = 0;
  };
  using Shard = std::deque<Piece>;

  void Add(const std::string& cluster, telemetry::Millis at, const telemetry::Readings& readings);
  kube::ApiRequest RequestOf(const Piece& piece) const;
  // OK if the piece is finished.
  Status Settle(Shard& shard, const Result<kube::ApiResponse>& answer, Duration& wish);
  void Refuse(Shard& shard, const kube::ApiResponse& answer);

  const RemoteWriteOptions options_;
  const MetricFilter filter_;
  const Destination& destination_;
  kube::Transport& transport_;
  Metrics& metrics_;
  SeriesNames names_;
  std::vector<Shard> shards_;
  bool said_ = false;                                     // a rejection of this batch was logged
  std::unordered_map<uint64_t, telemetry::Millis> last_;  // last sample time by hash of the subject
};

}  // namespace nos::exports
