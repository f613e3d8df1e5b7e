// The pods that wait for a decision: which of them is next, and which need not be tried because
// nothing has happened that could help them.
//
//   SchedulingQueue queue;
//   queue.Set(pod, now);
//   while (auto next = queue.Take(now)) {
//     ...                                            // bound: nothing more to do
//     queue.Refused(*next, decision.diagnosis.by, now);   // no node: sleeps until an event helps
//     queue.Failed(*next, now);                           // an error: again after a pause
//   }
//   queue.Happened(event, now);
//
// Semantics: kube-scheduler's scheduling queue (active, back-off, unschedulable, queueing hints),
// with one difference: of equal priority the pod that was created first goes first. A pod belongs
// to the queue from Set to Remove; what Take has given out is told again by Refused or Failed, or
// leaves by Remove.
//
// What happens between Take and Refused is not noticed: decide at once. One owner thread.
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

#include "base/clock.h"
#include "scheduling/framework.h"

namespace nos::scheduling {

struct QueueOptions {
  // Between attempts: initial, twice that, ... most. As podInitialBackoffSeconds and
  // podMaxBackoffSeconds.
  Duration initial_pause = std::chrono::seconds(1);
  Duration most_pause = std::chrono::seconds(10);
  // A pod that no event has helped is tried again after this.
  Duration longest_sleep = std::chrono::minutes(5);
};

class SchedulingQueue {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  explicit SchedulingQueue(QueueOptions options = {}) : options_(options) {}

  // A pod that waits, new or changed. `gate` not fitting: somebody must lift its gates first. A
  // change that a plugin could see makes it ready at once.
  void Set(const Pod& pod, const Verdict& gate, Time now);
  // It is bound, finished or gone.
  void Remove(const std::string& key);
  // Wakes the pods for which one of those that refused them says that this may help.
  void Happened(const ClusterEvent& event, Time now);
  // Wakes all, after something that no event tells.
  void WakeAll(Time now);

  // The next that is ready. It is out of the queue's hands until Refused, Failed, Set or Remove.
  std::optional<Pod> Take(Time now);
  // This one, whether it is ready or not, unless it is gated or not here.
  std::optional<Pod> TakeThis(const std::string& key);
  void Refused(const Pod& pod, std::vector<const Plugin*> by, Time now);
  void Failed(const Pod& pod, Time now);
  // Puts back what was taken, as if it had not been.
  void Return(const Pod& pod, Time now);

  // When Take will have a pod that it does not have now.
  std::optional<Time> NextDue() const;
  bool HasReady(Time now);
  size_t ready() const { return ready_.size(); }
  size_t paused() const { return paused_.size(); }
  size_t asleep() const { return by_time_asleep_.size(); }
  size_t gated() const { return gated_; }
  // All pods that are in it, taken ones too.
  std::vector<Pod> All() const;

 private:
  enum class Place { kTaken, kReady, kPaused, kAsleep, kGated };
  // Higher priority first, then older, then by key.
  using Rank = std::tuple<int64_t, Time, std::string>;
  struct Entry {
    Pod pod;
    std::string kind;
    Place place = Place::kTaken;
    int attempts = 0;  // in vain
    Time until{};      // of its pause
    Time asleep_since{};
  };
  // Sleeping pods of one kind that the same plugins refused: one question serves all.
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
  Duration PauseAfter(int attempts) const;
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
