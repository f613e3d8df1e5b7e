// Exports a cluster to a walk:ai backend: POST /cluster/insights with the number of MIG slices by
// profile, and the pods that request them. Source: the schema of that API (schemas/cluster.py).
//
// The backend rejects a whole snapshot that contains an unknown word, and stores only the last
// snapshot. Therefore:
//   - Only its words are used: profiles 1g.10gb 2g.20gb 3g.40gb 4g.40gb 7g.79gb (7g.80gb in nos),
//   without
//     media engines; pod states that it maps to states of its jobs. Anything else is left out and
//     logged once.
//   - Lists are always lists, also when they are empty.
//   - Pods that have ended are in every snapshot until one is accepted, and for five minutes after
//     that. Their records come from the store, so that pods reported late, deleted from the
//     cluster, or ended before a restart are included.
//   - Only one exporter runs, and the size of a snapshot is bounded: ended pods come first.
// Owns no thread; a step blocks on one answer. Used by one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "exports/destination.h"
#include "kube/transport.h"
#include "telemetryserver/recorder.h"

namespace nos::exports {

struct WalkaiOptions {
  std::string cluster;  // cluster to export; the backend supports one
  Duration interval = std::chrono::seconds(10);
  size_t max_pods = 1500;  // the backend's store limits an item to 400 KB
};

// Returns {"ts":..,"gpus":[..],"pods":[..]}. `ended`: records of pods that have ended or vanished;
// other ended pods are not included. `unknown` receives words that walk:ai does not know.
Json WalkaiSnapshot(const telemetryserver::State& state, const std::vector<Json>& ended,
                    size_t max_pods, std::set<std::string>& unknown);

class Walkai {
 public:
  static constexpr const char* kName = "walkai";

  // All arguments must outlive this object. REQUIRES: kName is one of the recorder's
  // event_followers.
  Walkai(WalkaiOptions options, telemetryserver::Recorder& recorder, const Destination& destination,
         kube::Transport& transport, Metrics& metrics);

  // Sends a snapshot if it is due. Returns the time until the next step.
  Duration Step(Time now);
  const Status& trouble() const { return trouble_; }

 private:
  // Null: no report of the cluster has arrived.
  Result<Json> Snapshot();
  Status ReadEnds(int64_t cluster);
  Result<Json> EndOf(int64_t cluster, const telemetryserver::Event& event);
  void Taken();
  Status Push(const Json& snapshot);
  void LogOutcome(const Status& outcome);

  const WalkaiOptions options_;
  telemetryserver::Recorder& recorder_;
  const Destination& destination_;
  kube::Transport& transport_;
  Metrics& metrics_;
  // A pod that has ended or vanished.
  struct End {
    int64_t event = 0;  // event that reported the end
    Json pod;
    telemetry::Millis taken = 0;  // when a snapshot with it was accepted; 0: not yet
  };
  std::set<std::string> unknown_;    // already logged
  std::map<std::string, End> ends_;  // by namespace and name; at most max_pods
  int64_t read_ = 0;                 // last event that was processed
  telemetry::Millis pushed_at_ = 0;
  Time next_{};
  Status trouble_;
};

}  // namespace nos::exports
