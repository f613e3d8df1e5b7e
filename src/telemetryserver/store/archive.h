// Reads stored series, events and past states while the store is being written.
//
//   Archive archive(path);
//   NOS_ASSIGN(auto buckets, archive.Samples(1, "gpu/GPU-1", "power", {from, to, step}));
//
// Thread-safe: each call uses its own connection.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/state.h"
#include "telemetryserver/store.h"
#include "telemetryserver/store/sqlite.h"

namespace nos::telemetryserver {

struct Range {
  telemetry::Millis from = 0, to = 0;  // exclusive
  telemetry::Millis step = 0;          // required resolution
};

struct Event {
  int64_t id = 0;
  telemetry::Millis at = 0;
  std::string kind, object;
  Json body;
};

// A position between events, by time and ID: it selects older events.
struct EventPlace {
  telemetry::Millis at = 0;
  int64_t id = 0;  // of events with the same time, smaller IDs
};
// "1763760000000.42", or a time alone. Error: kInvalid.
Result<EventPlace> ParseEventPlace(std::string_view text);
std::string ToText(const EventPlace& place);

struct EventQuery {
  telemetry::Millis from = 0, to = 0;  // exclusive
  std::vector<std::string> kinds;      // empty: all
  std::string object;                  // empty: all
  size_t most = 100;
  std::optional<EventPlace> before{};
  bool latest =
      false;  // only the last event of each object in the range, even if it is not before `before`
};

// Maximum number of events that one query reads; the caller continues from there.
inline constexpr size_t kMaxScanned = 20'000;

// A pod held `subject` from `since` to `until`; until 0: it still holds it.
struct Held {
  std::string subject;
  telemetry::Millis since = 0, until = 0;
};

class Archive {
 public:
  Archive(std::string path, Retention retention) : path_(std::move(path)), keep_(retention) {}

  // In order of time, from the coarsest level that is not coarser than the step; if a level's
  // retention has passed, from the next one. Unflushed samples are not included.
  Result<std::vector<Bucket>> Samples(int64_t cluster, const std::string& subject,
                                      const std::string& metric, const Range& range,
                                      telemetry::Millis now);
  // Every raw sample of a metric that is in a table, subject by subject.
  Status Raw(int64_t cluster, std::span<const std::string> subjects, const std::string& metric,
             const Range& range, FunctionRef<void(size_t subject, const Bucket&)> visit);
  // Means of a metric over five minutes, or over an hour where those are no longer kept, subject by
  // subject: `step` is the length of the bucket; 0: at most five minutes. Unflushed samples are not
  // included. False: late samples of that time are stored, and not included yet.
  Result<bool> Means(
      int64_t cluster, std::span<const std::string> subjects, const std::string& metric,
      const Range& range, telemetry::Millis now,
      FunctionRef<void(size_t subject, const Bucket&, telemetry::Millis step)> visit);
  // Events that change a state, in order of time: after `from`, until `to`.
  Status EachChange(int64_t cluster, telemetry::Millis from, telemetry::Millis to,
                    FunctionRef<void(const Event&)> visit);
  // Time of the first known state; nullopt: there is none.
  Result<std::optional<telemetry::Millis>> Begin(int64_t cluster);
  // Newest first.
  Result<std::vector<Event>> Events(int64_t cluster, const EventQuery& query);
  // Events of the cluster written after event `id`, in that order, independent of their time; among
  // the next `most` events of all clusters. `last`: ID of the last of these.
  struct Following {
    std::vector<Event> events;
    int64_t last = 0;
  };
  Result<Following> EventsAfter(int64_t cluster, int64_t id, const std::vector<std::string>& kinds,
                                size_t most);
  // Visits newest first, until `take` has accepted query.most events (it returns true to accept
  // one) or kMaxScanned are read. Returns the position to continue from; nullopt: the end.
  Result<std::optional<EventPlace>> Scan(int64_t cluster, EventQuery query,
                                         FunctionRef<bool(Event&)> take);
  // Slices that a pod ("ns/name") held within the range, in order.
  Result<std::vector<Held>> Holds(int64_t cluster, const std::string& pod, telemetry::Millis from,
                                  telemetry::Millis to);
  // The last measurement of each subject at or before `at`, at most `within` earlier; where raw
  // samples are no longer kept, the mean of 5 minutes or an hour. Visits only subjects with a
  // measurement. Unflushed samples are not included.
  Status Measured(int64_t cluster, const std::vector<std::string>& subjects, telemetry::Millis at,
                  telemetry::Millis within, telemetry::Millis now,
                  FunctionRef<void(telemetry::Millis at, telemetry::Readings)> visit);
  // The state at that time. Returns the number of damaged rows, which are left out. REQUIRES:
  // `state` is empty.
  Result<size_t> StateAt(int64_t cluster, telemetry::Millis at, State& state);
  // Advances a state to a later time. `state`: result of StateAt for `from`. Returns as StateAt.
  Result<size_t> Advance(int64_t cluster, telemetry::Millis from, telemetry::Millis to,
                         State& state);

 private:
  using Buckets = std::vector<Bucket>;
  struct Wanted {
    int64_t subject = 0, metric = 0;
    telemetry::Millis now = 0;
  };
  class Lease;
  // The level that still has samples of that time.
  Result<size_t> LevelAt(Sqlite& db, telemetry::Millis at, telemetry::Millis now) const;
  static Result<size_t> ApplySince(Sqlite& db, int64_t cluster, telemetry::Millis after,
                                   telemetry::Millis at, State& state);
  Result<Sqlite> Take();
  void GiveBack(Sqlite db);
  Status Collect(Sqlite& db, const Wanted& wanted, size_t level, telemetry::Millis from,
                 telemetry::Millis to, Buckets& buckets) const;
  static Status CollectRows(Sqlite& db, const Wanted& wanted, size_t level, telemetry::Millis from,
                            telemetry::Millis to, Buckets& buckets);

  const std::string path_;
  const Retention keep_;
  std::mutex mutex_;
  std::vector<Sqlite> idle_;
};

// Reads the body of an event as stored: JSON, or JSON as gzip.
Result<Json> ReadEventBody(std::string_view bytes);

// One bucket per step from `from` on, of the buckets and samples in it; empty steps have a count of
// 0.
std::vector<Bucket> Regrouped(const std::vector<Bucket>& buckets, const Range& range);

}  // namespace nos::telemetryserver
