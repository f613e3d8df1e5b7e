// Keeps a local copy of a collection current: lists it, watches it, and lists again if the watch
// cannot continue. A state machine without thread or clock:
//
//   Reflector reflector(kPods, {.field_selector = "spec.nodeName=gpu-1"});
//   reflector.Pump(client, clock.Now(), sink);   // lists when needed, drains what has arrived
//
// Pump never waits for events; `wake` announces them. Errors lead to back-off, 410 Gone to a new
// list, an ended watch to a new watch from the last version seen. Not thread-safe: one owner.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/client.h"
#include "kube/work_queue.h"

namespace nos::kube {

class ReflectorSink {
 public:
  virtual ~ReflectorSink() = default;
  // Enclose a list: objects that were not upserted between the two calls are deleted. A list that
  // is interrupted has no end; the next list begins again.
  virtual void BeginList() = 0;
  virtual void EndList() = 0;
  // Both return the object's resourceVersion; "" if it cannot be read.
  virtual std::string Upsert(JsonSource object) = 0;
  virtual std::string Remove(JsonSource object) = 0;
};

struct ReflectorOptions {
  std::string ns{};  // empty: all
  std::string label_selector{}, field_selector{};
  BackOff back_off{};
  // Interval of repeated lists, in case an event was lost.
  Duration relist_every = std::chrono::minutes(10);
  // Maximum number of events in one Pump.
  size_t batch = 10000;
  // If true, a resource that the server does not know counts as empty and is tried again once a
  // minute: for CRDs of add-ons and resources of newer servers.
  bool may_be_unknown = false;
  // Called from any thread when events have arrived since the last Pump.
  std::function<void()> wake{};
};

class Reflector {
 public:
  explicit Reflector(Resource resource, ReflectorOptions options = {});

  // Returns whether it delivered anything.
  bool Pump(Client& client, Time now, ReflectorSink& sink);
  // The collection has been listed at least once.
  bool synced() const { return synced_; }
  // The next time when Pump has work that no event announces (a list, a retry).
  Time NextDue() const;
  // The cause of the last attempt's failure; OK if it succeeded.
  const Status& last_error() const { return last_error_; }

 private:
  bool ListNow(Client& client, Time now, ReflectorSink& sink);
  void OpenWatch(Client& client, Time now);
  bool Drain(Time now, ReflectorSink& sink);
  bool Deliver(const WatchEvent& event, Time now, ReflectorSink& sink);
  void Fail(Status error, Time now);

  Resource resource_;
  ReflectorOptions options_;
  std::unique_ptr<WatchStream> stream_;
  std::string version_;  // the watch resumes here; empty: list first
  bool synced_ = false;
  int failures_ = 0;        // consecutive
  int broken_watches_ = 0;  // consecutive watches that opened but ended soon
  Time listed_{}, opened_{};
  Time next_attempt_{};
  Status last_error_;
};

}  // namespace nos::kube
