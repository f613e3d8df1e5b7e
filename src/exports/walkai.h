// The cluster as a walk:ai backend takes it: POST /cluster/insights with what there is of MIG
// slices, by profile, and the pods that ask for them. Source: the schema of that API
// (schemas/cluster.py).
//
// That backend refuses a whole snapshot for one word that it does not know, and keeps nothing but
// the last one. So
//   - words are of its own: profiles 1g.10gb 2g.20gb 3g.40gb 4g.40gb 7g.79gb (ours 7g.80gb), media
//     engines left out; states of pods that it maps to those of its jobs. What it has no word for
//     is left out, and said once in the log;
//   - lists are lists, also where they are empty;
//   - pods that have ended are told until a snapshot has been taken, and in every one of the five
//     minutes after that, from what the store knows of them: however late it was told, also after
//     they are gone from the cluster and after a restart;
//   - it is one that tells, and the snapshot is bounded: those that ended come first.
// Owns no thread; a step waits for one answer. One owner.
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
  std::string cluster;  // which; that backend knows one
  Duration interval = std::chrono::seconds(10);
  size_t most_pods = 1500;  // its store takes 400 KB
};

// As {"ts":..,"gpus":[..],"pods":[..]}. `ended`: records of pods that have ended, or vanished; no
// others that have ended are told. `unknown` gets what there is no word for.
Json WalkaiSnapshot(const telemetryserver::State& state, const std::vector<Json>& ended, size_t most_pods,
                    std::set<std::string>& unknown);

class Walkai {
 public:
  static constexpr const char* kName = "walkai";

  // All must outlive this. REQUIRES: kName is one of the recorder's event_followers.
  Walkai(WalkaiOptions options, telemetryserver::Recorder& recorder, const Destination& destination,
         kube::Transport& transport, Metrics& metrics);

  // Tells, if it is time to. When to step again.
  Duration Step(Time now);
  const Status& trouble() const { return trouble_; }

 private:
  // Nothing: the cluster has not been heard of.
  Result<Json> Snapshot();
  Status ReadEnds(int64_t cluster);
  Result<Json> EndOf(int64_t cluster, const telemetryserver::Event& event);
  void Taken();
  Status Push(const Json& snapshot);
  void Say(const Status& trouble);

  const WalkaiOptions options_;
  telemetryserver::Recorder& recorder_;
  const Destination& destination_;
  kube::Transport& transport_;
  Metrics& metrics_;
  // A pod that has ended, or vanished.
  struct End {
    int64_t event = 0;  // that told so
    Json pod;
    telemetry::Millis taken = 0;  // when a snapshot with it was taken; 0: not yet
  };
  std::set<std::string> unknown_;    // said
  std::map<std::string, End> ends_;  // by namespace and name; at most most_pods
  int64_t read_ = 0;                 // the last event that is in ends_, or need not be
  telemetry::Millis pushed_at_ = 0;
  Time next_{};
  Status trouble_;
};

}  // namespace nos::exports
