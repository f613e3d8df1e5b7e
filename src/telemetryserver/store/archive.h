// Reads what has been stored, while it is being written: series of samples, events, past states.
//
//   Archive archive(path);
//   NOS_ASSIGN(auto buckets, archive.Samples(1, "gpu/GPU-1", "power", {from, to, step}));
//
// Thread-safe: each call has a connection of its own.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/store/sqlite.h"
#include "telemetryserver/state.h"
#include "telemetryserver/store.h"

namespace nos::telemetryserver {

struct Range {
  telemetry::Millis from = 0, to = 0;  // to: not included
  telemetry::Millis step = 0;          // no finer than this is needed
};

struct Event {
  int64_t id = 0;
  telemetry::Millis at = 0;
  std::string kind, object;
  Json body;
};

// Between events, by time and number: what is older than this.
struct EventPlace {
  telemetry::Millis at = 0;
  int64_t id = 0;  // of those of the same time, the smaller ones
};
// "1763760000000.42", or a time alone. Error: kInvalid.
Result<EventPlace> ParseEventPlace(std::string_view text);
std::string ToText(const EventPlace& place);

struct EventQuery {
  telemetry::Millis from = 0, to = 0;         // to: not included
  std::vector<std::string> kinds;  // empty: all
  std::string object;              // empty: all
  size_t most = 100;
  std::optional<EventPlace> before{};
  bool latest = false;  // of each object only the last one of the time, even if that is not before
};

// Events that a question looks at, at most; who asks goes on from there.
inline constexpr size_t kMostScanned = 20'000;

// A pod held `subject` from `since` to `until`; until 0: it does so still.
struct Held {
  std::string subject;
  telemetry::Millis since = 0, until = 0;
};

class Archive {
 public:
  Archive(std::string path, Retention retention) : path_(std::move(path)), keep_(retention) {}

  // In order of time, in the coarsest kept form that is not coarser than the step; of what is not
  // kept that fine any more, what there is. Samples that are not flushed yet are not here.
  Result<std::vector<Bucket>> Samples(int64_t cluster, const std::string& subject,
                                      const std::string& metric, const Range& range, telemetry::Millis now);
  // Every sample of a metric that is kept as it came and is in a table, subject by subject.
  Status Raw(int64_t cluster, std::span<const std::string> subjects, const std::string& metric,
             const Range& range, FunctionRef<void(size_t subject, const Bucket&)> visit);
  // The newest first.
  Result<std::vector<Event>> Events(int64_t cluster, const EventQuery& query);
  // Those of the cluster that were written down after event `id`, in that order, whatever their
  // time; as far as they are among the next `most` of all. `last`: of these the last one.
  struct Following {
    std::vector<Event> events;
    int64_t last = 0;
  };
  Result<Following> EventsAfter(int64_t cluster, int64_t id, const std::vector<std::string>& kinds,
                                size_t most);
  // Visits the newest first, until `take` has kept query.most of them (it returns whether it keeps
  // one) or kMostScanned have been looked at. Returns from where to go on; nothing: that was all.
  Result<std::optional<EventPlace>> Scan(int64_t cluster, EventQuery query,
                                         FunctionRef<bool(Event&)> take);
  // The slices that a pod ("ns/name") held within the range, in order.
  Result<std::vector<Held>> Holds(int64_t cluster, const std::string& pod, telemetry::Millis from, telemetry::Millis to);
  // Of each subject what was measured last before `at`, or with it, and no more than `within`
  // before; where samples are not kept any more, the mean of the 5 minutes or the hour. Visits
  // those of whom there is something. Samples that are not flushed yet are not here.
  Status Measured(int64_t cluster, const std::vector<std::string>& subjects, telemetry::Millis at,
                  telemetry::Millis within, telemetry::Millis now, FunctionRef<void(telemetry::Millis at, telemetry::Readings)> visit);
  // What was so at that moment. `state`: empty.
  Status StateAt(int64_t cluster, telemetry::Millis at, State& state);
  // From one moment to a later one. `state`: as StateAt left it, of the former.
  Status Advance(int64_t cluster, telemetry::Millis from, telemetry::Millis to, State& state);

 private:
  using Buckets = std::vector<Bucket>;
  struct Wanted {
    int64_t subject = 0, metric = 0;
    telemetry::Millis now = 0;
  };
  class Lease;
  // The level that has that time.
  Result<size_t> LevelAt(Sqlite& db, telemetry::Millis at, telemetry::Millis now) const;
  static Status ApplySince(Sqlite& db, int64_t cluster, telemetry::Millis after, telemetry::Millis at, State& state);
  Result<Sqlite> Take();
  void GiveBack(Sqlite db);
  Status Collect(Sqlite& db, const Wanted& wanted, size_t level, telemetry::Millis from, telemetry::Millis to,
                 Buckets& buckets) const;
  static Status CollectRows(Sqlite& db, const Wanted& wanted, size_t level, telemetry::Millis from, telemetry::Millis to,
                            Buckets& buckets);

  const std::string path_;
  const Retention keep_;
  std::mutex mutex_;
  std::vector<Sqlite> idle_;
};

// As an event's is in the file: JSON, or that as gzip.
Result<Json> ReadEventBody(std::string_view bytes);

// One bucket a step from `from` on, of the buckets and samples that lie in it; those without any
// have a count of 0.
std::vector<Bucket> Regrouped(const std::vector<Bucket>& buckets, const Range& range);

}  // namespace nos::telemetryserver
