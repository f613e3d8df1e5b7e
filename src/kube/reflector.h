// Keeps a local copy of a collection current: lists it, watches it, and lists again when the watch
// cannot go on. A state machine without thread or clock:
//
//   Reflector reflector(kPods, {.field_selector = "spec.nodeName=gpu-1"});
//   reflector.Pump(client, clock.Now(), sink);   // lists when needed, drains what has arrived
//
// Pump never waits for events; `wake` tells when there are some. Errors lead to back-off, 410 Gone
// to a new list, an ended watch to a new watch from the last version seen. Not thread-safe: one
// owner.
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
  // Around a list: all that is not upserted between the two is gone. A list that breaks off has no
  // end; another begins.
  virtual void BeginList() = 0;
  virtual void EndList() = 0;
  // Both return the object's resourceVersion; "" when it cannot be read.
  virtual std::string Upsert(JsonSource object) = 0;
  virtual std::string Remove(JsonSource object) = 0;
};

struct ReflectorOptions {
  std::string ns{};  // empty: all
  std::string label_selector{}, field_selector{};
  BackOff back_off{};
  // Lists anew this often, in case an event got lost on the way.
  Duration relist_every = std::chrono::minutes(10);
  // Events taken in one Pump.
  size_t batch = 10000;
  // A server that does not know the resource has none of it, and is asked again once a minute: for
  // what an add-on or a newer server brings.
  bool may_be_unknown = false;
  // Called from any thread when a Pump would find something that arrived after the last one.
  std::function<void()> wake{};
};

class Reflector {
 public:
  explicit Reflector(Resource resource, ReflectorOptions options = {});

  // Returns whether anything was delivered.
  bool Pump(Client& client, Time now, ReflectorSink& sink);
  // The collection has been listed at least once.
  bool synced() const { return synced_; }
  // When Pump has work that no event announces (a list, a retry).
  Time NextDue() const;
  // Why the last attempt failed; OK when it did not.
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
  std::string version_;  // resume the watch from here; empty: list first
  bool synced_ = false;
  int failures_ = 0;        // in a row
  int broken_watches_ = 0;  // opened, and ended soon, in a row
  Time listed_{}, opened_{};
  Time next_attempt_{};
  Status last_error_;
};

}  // namespace nos::kube
