// Samples to a system that takes Prometheus remote-write (protocol 1.0).
//
// Samples of one subject go through one shard, in order; the shards' requests are under way
// together. What the answer means:
//   2xx                                     taken
//   401, 403, 404, 407, 408, 425, 429, 5xx  again later: nothing is said about the samples
//   other 4xx                               refused: the request is split in two and tried again,
//   so
//                                           that what is wrong with a few does not take the others
//                                           along; pieces that stay refused are dropped and counted
// Samples older than the last of their subject are dropped and counted: receivers refuse them.
// One owner.
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
  Labels labels;        // that all series get
  size_t shards = 4;
  size_t samples_per_request = 2000;
};

class RemoteWrite final : public Sink {
 public:
  static constexpr const char* kName = "remoteWrite";

  // All must outlive this.
  RemoteWrite(RemoteWriteOptions options, const Destination& destination,
              kube::Transport& transport, Metrics& metrics);

  // What GPUs and slices there were before the first row.
  void Know(const std::string& cluster, const telemetryserver::State& state) {
    names_.Follow(cluster, state);
  }
  void Take(std::span<const telemetryserver::Journaled> rows) override;
  Status Send(Time now, Duration& wish) override;

 private:
  struct Piece {
    std::string body;            // WriteRequest
    std::vector<size_t> begins;  // of each series in it
    int splits = 0;
  };
  using Shard = std::deque<Piece>;

  void Add(const std::string& cluster, telemetry::Millis at, const telemetry::Readings& readings);
  kube::ApiRequest RequestOf(const Piece& piece) const;
  // Whether the piece is done with.
  Status Settle(Shard& shard, const Result<kube::ApiResponse>& answer, Duration& wish);
  void Refuse(Shard& shard, const kube::ApiResponse& answer);

  const RemoteWriteOptions options_;
  const MetricFilter filter_;
  const Destination& destination_;
  kube::Transport& transport_;
  Metrics& metrics_;
  SeriesNames names_;
  std::vector<Shard> shards_;
  bool said_ = false;                                     // that something of this batch is refused
  std::unordered_map<uint64_t, telemetry::Millis> last_;  // of each subject, by hash
};

}  // namespace nos::exports
