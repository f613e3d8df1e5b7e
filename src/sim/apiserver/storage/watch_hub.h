// The bounded history of changes per kind, and the watches that read it.
//
// A watch is a position in the history, not a queue: a watch that is never read costs nothing. A
// watch that falls behind the oldest kept change ends with an ERROR event 410, and its client lists
// again.
//
//   hub->Append("pods", {version, Change::Kind::kAdded, key, object, nullptr});
//   WatchSubscription watch(hub, spec);               // from spec.version on
//   while (auto event = watch.Next()) ...             // never blocks; OnReady announces new ones
//
// Threads: all functions may be called from any thread. One internal mutex, which is not held
// during calls to other code except for a watch's wake function.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/transport.h"

namespace nos::sim {

struct ObjectKey {
  std::string ns, name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// Stored objects are immutable and shared by all readers.
using ObjectRef = std::shared_ptr<const Json>;

struct Change {
  enum class Kind { kAdded, kModified, kDeleted };
  uint64_t version = 0;
  Kind kind = Kind::kAdded;
  ObjectKey key;
  ObjectRef object;  // after the change; for kDeleted its last state, with the deletion's
                     // resourceVersion
  ObjectRef before;  // null for kAdded
  size_t bytes = 0;  // memory that the change keeps alive; set by Append
};

class WatchSubscription;

class WatchHub {
 public:
  // Keeps at most `history` changes per storage, and at most about `bytes` of memory for them
  // beyond the store itself; always keeps the newest.
  WatchHub(size_t history, size_t bytes) : history_(history), bytes_(bytes) {}

  // REQUIRES: versions increase.
  void Append(const std::string& storage, Change change);
  // Ends all watches of a storage and drops its history.
  void Close(const std::string& storage);
  void CloseAll();

  // Differences between the current state and the state at `version`: the old object by key, null
  // if it did not exist. nullopt if the history does not reach back to `version`.
  std::optional<std::map<ObjectKey, ObjectRef>> StateAt(const std::string& storage,
                                                        uint64_t version) const;

 private:
  friend class WatchSubscription;
  struct Log {
    std::deque<Change> changes;
    size_t bytes = 0;        // kept alive by the changes
    uint64_t forgotten = 0;  // version of the newest dropped change
    uint64_t epoch = 0;      // number of calls of Close
    std::set<WatchSubscription*> watches;
  };
  static void ForgetOldest(Log& log);
  static void Wake(Log& log);

  const size_t history_;
  const size_t bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, Log> logs_;
};

struct WatchSpec {
  std::string storage;
  std::function<bool(const Json& object)> matches;
  std::function<Json(const Json& object)> present;  // converts to the form requested by the client
  uint64_t version = 0;                             // changes after this one are sent
  std::vector<ObjectRef> initial;                   // sent first, as ADDED
  bool bookmark_after_initial = false;              // the client asked for sendInitialEvents
  bool bookmarks = false;
  Json bookmark;  // kind and apiVersion of bookmarks
};

class WatchSubscription final : public kube::WatchStream {
 public:
  WatchSubscription(std::shared_ptr<WatchHub> hub, WatchSpec spec);
  ~WatchSubscription() override;

  std::optional<kube::WatchEvent> Next() override;
  bool Ended() const override;
  void OnReady(std::function<void()> wake) override;
  // A bookmark with the current position, for a client that has had no event for long. nullopt if
  // the client did not request bookmarks. Call it when Next has no event.
  std::optional<kube::WatchEvent> Progress();

 private:
  friend class WatchHub;
  // The next change that this watch selects, with its event type; nullopt if there is none now.
  std::optional<std::pair<Change, std::string>> Advance();
  std::optional<std::string> TypeFor(const Change& change) const;
  kube::WatchEvent Bookmark(bool after_initial) const;
  kube::WatchEvent TooOld();
  std::optional<kube::WatchEvent> IdleBookmark();
  bool Ready() const;  // REQUIRES: the hub's mutex is held
  bool Closed() const;

  const std::shared_ptr<WatchHub> hub_;
  const WatchSpec spec_;
  WatchHub::Log& log_;
  // The members below are guarded by the hub's mutex.
  const uint64_t epoch_;
  size_t initial_sent_ = 0;
  bool initial_bookmark_due_ = false;
  uint64_t version_;
  uint64_t last_reported_;  // version of the last event or bookmark
  bool failed_ = false;
  std::function<void()> wake_;
};

}  // namespace nos::sim
