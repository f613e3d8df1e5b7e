// Series that this server computes from the state of a cluster: each tick in real time, and again
// for past ticks whose records arrive late.
//
//   DerivedSeries series({live_clusters, store, archive, catalogue, clock, metrics}, stale, kept);
//   series.Note(live, record, effects);           // each record: is it late?
//   std::string envelope = series.Tick(live);     // gzip, for the journal; "": no tick is due
//   bool more = series.Step(hurry, unwritten);    // one step of backfill
//
// Backfill takes turns over clusters and rests between its steps, because the same thread stores
// envelopes. A step that fails is logged, counted, and retried later. Used by one thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "gpu/catalogue.h"
#include "telemetryserver/ingest/backfill.h"
#include "telemetryserver/ingest/live.h"
#include "telemetryserver/store.h"
#include "telemetryserver/store/archive.h"

namespace nos::telemetryserver {

class DerivedSeries {
 public:
  // All must outlive the series.
  struct Uses {
    LiveClusters& clusters;
    Store& store;
    Archive& archive;
    const gpu::Catalogue& catalogue;
    const Clock& clock;
    Metrics& metrics;
  };
  // `stale`: see Recorder::stale. `kept`: older ticks are not computed again.
  DerivedSeries(const Uses& uses, telemetry::Millis stale, telemetry::Millis kept)
      : uses_(uses), stale_(stale), kept_(kept) {}

  // At the start: how far the cluster's series are on disk.
  Status Load(Live& live);
  // A record that was applied, with its effects. Late ones make past ticks due again.
  void Note(Live& live, const telemetry::Record& record, const Effects& effects);
  // Computes the tick of the state's time, unless it is done. Locks the clusters.
  std::string Tick(Live& live);

  // Within a transaction: writes progress that changed.
  Status Write(const Live& live);
  // Call after the commit.
  void Written(const Live& live) { stored_[live.id] = live.derived; }

  // One step of the past ticks that are due. `hurry`: without rest. `unwritten`: some events are
  // not in the store yet, so that it waits. True: more is due.
  bool Step(bool hurry, bool unwritten);
  // Starts the current stretch again, after past states changed.
  void Restart() { backfill_.reset(); }

 private:
  void MarkDue(Live& live, telemetry::Millis from, telemetry::Millis to);
  Live* Next();
  Result<bool> StepOf(Live& live);
  telemetry::Millis Now() const;

  const Uses uses_;
  const telemetry::Millis stale_, kept_;
  std::map<int64_t, Derived> stored_;   // by cluster, as on disk
  std::unique_ptr<Backfill> backfill_;  // being computed; null: none
  std::string last_;                    // cluster that had the last turn
  Time after_{};                        // end of the rest; of the steady clock
};

}  // namespace nos::telemetryserver
