// The current states of all clusters: one thread changes them, the others read them.
//
//   LiveClusters clusters;
//   { const auto lock = clusters.Lock(); clusters.Of(id, "prod").state.Apply(record, source); }
//   clusters.Look("prod", [](const Live& live) { ... live.state ... });  // from any thread
//
// The writer thread reads without the lock, and holds it while it changes what readers see: the set
// of clusters, `state` and `heads`. Clusters are never removed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "telemetryserver/ingest/arrivals.h"
#include "telemetryserver/ingest/node_subjects.h"
#include "telemetryserver/state.h"
#include "telemetryserver/store/cluster_table.h"
#include "telemetryserver/store/heads.h"

namespace nos::telemetryserver {

// Current state of a cluster.
struct Live {
  int64_t id = 0;
  std::string name;
  telemetry::Millis opened = 0;  // when this server read it from its store; 0: it is new
  State state;
  Heads heads;
  Derived derived;
  telemetry::Millis derived_flushed = 0;  // computed ticks up to this time are on disk
  // Latest time of object records from each source and boot.
  std::map<std::pair<std::string, std::string>, telemetry::Millis> reported_until;
  Arrivals arrivals;
  NodeSubjects node_subjects;  // used by the writer thread only
};

class LiveClusters {
 public:
  using Map = std::map<std::string, std::unique_ptr<Live>>;  // by name

  // --- From any thread ---
  // False: the cluster is not known.
  bool Look(const std::string& name, FunctionRef<void(const Live&)> visit) const;
  void LookAtAll(FunctionRef<void(const Live&)> visit) const;  // in order of names
  std::vector<std::string> Names() const;
  // Error: kInvalid if the cluster is not known and there are too many.
  Status Accepts(const std::string& name) const;

  // --- From the writer thread ---
  [[nodiscard]] std::unique_lock<std::shared_mutex> Lock() { return std::unique_lock(mutex_); }
  // Adds an unknown cluster. REQUIRES: the lock is held, or there are no other threads yet.
  Live& Of(int64_t id, const std::string& name);
  const Map& all() const { return live_; }
  // Number of values in memory.
  size_t samples() const;

 private:
  mutable std::shared_mutex mutex_;
  Map live_;
};

}  // namespace nos::telemetryserver
