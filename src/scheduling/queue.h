// Queue of pending pods: decides which pod is next, and skips pods that no event since their last
// attempt could have helped.
//
//   SchedulingQueue queue;
//   queue.Set(pod, gate, now);
//   while (auto next = queue.Take(now)) {
//     ...                                            // bound: nothing more to do
//     queue.Refused(*next, decision.diagnosis.by, now);   // no node: sleeps until an event helps
//     queue.Failed(*next, now);                           // an error: retries after back-off
//   }
//   queue.OnClusterEvent(event, now);
//
// Semantics are those of kube-scheduler's scheduling queue (active, back-off, unschedulable,
// queueing hints), with one difference: among pods of equal priority the oldest comes first. A pod
// belongs to the queue from Set to Remove. A pod returned by Take must be passed to Refused or
// Failed, or removed.
//
// Events between Take and Refused are not seen by the taken pod: decide at once. Owned by one
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/back_off.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

struct QueueOptions {
  // Back-off between attempts: doubles from initial_pause to max_pause. Settings
  // podInitialBackoffSeconds and podMaxBackoffSeconds.
  Duration initial_pause = std::chrono::seconds(1);
  Duration max_pause = std::chrono::seconds(10);
  // A sleeping pod is retried after this time even without an event.
  Duration max_sleep = std::chrono::minutes(5);
};

class SchedulingQueue {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  explicit SchedulingQueue(QueueOptions options = {}) : options_(options) {}

  // Adds or updates a pending pod. A `gate` that does not fit keeps it gated. A change that a
  // plugin could see makes the pod ready at once, unless it is in back-off.
  void Set(const Pod& pod, const Verdict& gate, Time now);
  // The pod is bound, finished or deleted.
  void Remove(const std::string& key);
  // Wakes pods for which a plugin that refused them reports that the event may help.
  void OnClusterEvent(const ClusterEvent& event, Time now);
  // Wakes all pods, after a change that is not covered by events.
  void WakeAll(Time now);

  // Returns the next ready pod. The queue does not return it again until Refused, Failed, Return or
  // a change (Set) makes it ready.
  std::optional<Pod> Take(Time now);
  // Returns this pod even if it is asleep or in back-off. Absent: unknown or gated.
  std::optional<Pod> TakeThis(const std::string& key);
  void Refused(const Pod& pod, std::vector<const Plugin*> by, Time now);
  void Failed(const Pod& pod, Time now);
  // Undoes Take.
  void Return(const Pod& pod, Time now);
  // Makes a sleeping pod ready, also during its back-off. Ignored for pods that are gated or taken.
  void Activate(const std::string& key);

  // Next time at which a pod becomes ready without an event.
  std::optional<Time> NextDue() const;
  bool HasReady(Time now);
  size_t ready() const { return ready_.size(); }
  size_t paused() const { return paused_.size(); }
  size_t asleep() const { return by_time_asleep_.size(); }
  size_t gated() const { return gated_; }
  // All pods in the queue, including taken ones.
  std::vector<Pod> All() const;

 private:
  enum class Place { kTaken, kReady, kPaused, kAsleep, kGated };
  // Higher priority first, then older, then by key.
  using Rank = std::tuple<int64_t, Time, std::string>;
  struct Entry {
    Pod pod;
    std::string kind;
    Place place = Place::kTaken;
    int attempts = 0;  // failed attempts
    Time until{};      // end of back-off
    Time asleep_since{};
  };
  // Sleeping pods of one kind that the same plugins refused. One call of MayHelp covers all of
  // them.
  struct Dormitory {
    Pod one;
    std::vector<const Plugin*> by;
    std::set<std::string> keys;
  };

  static Rank RankOf(const cluster::Pod& pod);
  static std::string DormitoryOf(const Entry& entry, const std::vector<const Plugin*>& by);
  void Leave(const std::string& key, Entry& entry);
  void MakeReady(const std::string& key, Entry& entry);
  void Wake(const std::string& key, Entry& entry, Time now);
  void Pause(const std::string& key, Entry& entry, Time until);
  Duration PauseAfter(int attempts) const {
    return BackOff{options_.initial_pause, options_.max_pause}.After(attempts);
  }
  void WakeDue(Time now);

  QueueOptions options_;
  std::unordered_map<std::string, Entry> entries_;
  std::map<Rank, std::string> ready_;
  std::set<std::pair<Time, std::string>> paused_;
  std::map<std::string, Dormitory> dormitories_;
  std::unordered_map<std::string, std::string> sleeps_in_;  // pod key -> dormitory
  std::set<std::pair<Time, std::string>> by_time_asleep_;
  size_t gated_ = 0;
};

}  // namespace nos::scheduling
