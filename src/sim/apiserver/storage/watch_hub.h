// The bounded history of changes per kind of object, and the watches that read from it.
//
// A watch is a position in the history, not a queue: one that is never read costs nothing, and one
// that falls behind the oldest kept change ends with an ERROR event 410, after which its client
// lists again.
//
// Threads: everything here may be called from any thread; one mutex inside, never held while
// calling out except for a watch's wake function.
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

// Objects are immutable once stored and shared by everyone who reads them.
using ObjectRef = std::shared_ptr<const Json>;

struct Change {
  enum class Kind { kAdded, kModified, kDeleted };
  uint64_t version = 0;
  Kind kind = Kind::kAdded;
  ObjectKey key;
  ObjectRef object;  // after; for kDeleted its last state, with the deletion's resourceVersion
  ObjectRef before;  // null for kAdded
  size_t bytes = 0;  // what it keeps alive; Append fills it in
};

class WatchSubscription;

class WatchHub {
 public:
  // Keeps at most `history` changes per storage, and of them no more than take about `bytes` of
  // memory beyond what the store itself holds; but always the newest.
  WatchHub(size_t history, size_t bytes) : history_(history), bytes_(bytes) {}

  // REQUIRES: versions grow.
  void Append(const std::string& storage, Change change);
  // Ends every watch of a storage and forgets its history.
  void Close(const std::string& storage);
  void CloseAll();

  // What was otherwise at `version`: key to object then, null where there was none. Nothing when
  // the history does not reach back that far.
  std::optional<std::map<ObjectKey, ObjectRef>> StateAt(const std::string& storage,
                                                        uint64_t version) const;

 private:
  friend class WatchSubscription;
  struct Log {
    std::deque<Change> changes;
    size_t bytes = 0;        // that the changes keep alive
    uint64_t forgotten = 0;  // version of the newest change that is no longer kept
    uint64_t epoch = 0;      // counts Close
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
  std::function<Json(const Json& object)> present;  // the form in which the client sees it
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
  // How far it has come, for a client that has long been told nothing; nothing when it asked for no
  // bookmarks. To be called when Next has none.
  std::optional<kube::WatchEvent> Progress();

 private:
  friend class WatchHub;
  // The next change that this watch shows, as it shows it; null when there is none now.
  std::optional<std::pair<Change, std::string>> Advance();
  std::optional<std::string> TypeFor(const Change& change) const;
  kube::WatchEvent Bookmark(bool after_initial) const;
  kube::WatchEvent TooOld();
  std::optional<kube::WatchEvent> IdleBookmark();
  bool Ready() const;  // under the hub's mutex
  bool Closed() const;

  const std::shared_ptr<WatchHub> hub_;
  const WatchSpec spec_;
  WatchHub::Log& log_;
  // All below under the hub's mutex.
  const uint64_t epoch_;
  size_t initial_sent_ = 0;
  bool initial_bookmark_due_ = false;
  uint64_t version_;
  uint64_t last_told_;  // version of the last event or bookmark
  bool failed_ = false;
  std::function<void()> wake_;
};

}  // namespace nos::sim
