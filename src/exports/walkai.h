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
//   - pods that have ended are told in every snapshot of five minutes and until one has been taken,
//     from what the store knows of them, also after they are gone from the cluster and after a
//     restart;
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
#include "telemetry/recorder.h"

namespace nos::exports {

struct WalkaiOptions {
  std::string cluster;  // which; that backend knows one
  Duration interval = std::chrono::seconds(10);
  size_t most_pods = 1500;  // its store takes 400 KB
};

// As {"ts":..,"gpus":[..],"pods":[..]}. `ended`: records of pods that are not in the state any
// more. `since`: pods that ended earlier are left out. `unknown` gets what there is no word for.
Json WalkaiSnapshot(const telemetry::State& state, const std::vector<Json>& ended,
                    telemetry::Millis since, size_t most_pods, std::set<std::string>& unknown);

class Walkai {
 public:
  static constexpr const char* kName = "walkai";

  // All must outlive this.
  Walkai(WalkaiOptions options, telemetry::Recorder& recorder, const Destination& destination,
         kube::Transport& transport, Metrics& metrics);

  // Tells, if it is time to. When to step again.
  Duration Step(Time now);
  const Status& trouble() const { return trouble_; }

 private:
  // Nothing: the cluster has not been heard of.
  Result<Json> Snapshot();
  Result<std::vector<Json>> Ended(telemetry::Millis since,
                                  const std::set<std::string, std::less<>>& present, int64_t id);
  Status Push(const Json& snapshot);
  void Say(const Status& trouble);

  const WalkaiOptions options_;
  telemetry::Recorder& recorder_;
  const Destination& destination_;
  kube::Transport& transport_;
  Metrics& metrics_;
  std::set<std::string> unknown_;  // said
  telemetry::Millis pushed_at_ = 0;
  Time next_{};
  Status trouble_;
};

}  // namespace nos::exports
