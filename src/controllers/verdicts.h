// What the last plans said about each waiting pod, and the telling of it: a condition on the pod,
// an Event when slices are cut for it and one when none can be, with the reason and what would
// help. Written bit by bit, so that fifty thousand pods do not block a call.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "controllers/reconciler.h"
#include "kube/event_recorder.h"
#include "planning/planner.h"

namespace nos::controllers {

// Status False, reason = the first of planning::Reason::code; True once slices
// are planned for it.
inline constexpr std::string_view kPartitionedCondition = "nos.nebuly.com/Partitioned";

class Verdicts {
 public:
  explicit Verdicts(size_t writes_per_call) : writes_per_call_(writes_per_call) {}

  void Add(planning::PodOutcome outcome);
  // Pods that are bound or gone need no verdict.
  void Forget(const View& view);
  // Returns whether there is more to tell.
  bool TellSome(const View& view, kube::Client& client, kube::EventRecorder& events, Time now);
  const std::map<std::string, planning::PodOutcome>& all() const { return verdicts_; }

 private:
  // When a pod was last told, and the reason that the Event gave.
  struct Told {
    Time condition{}, event{};
    std::string reason;
  };

  // Returns how much was written.
  size_t Tell(const planning::PodOutcome& outcome, const cluster::Pod& pod, kube::Client& client,
              kube::EventRecorder& events, Time now);
  static bool TooSoon(const cluster::Pod& pod, const std::string& reason, const Told& told,
                      Time now);

  size_t writes_per_call_;
  std::map<std::string, planning::PodOutcome> verdicts_;  // by pod key
  std::deque<std::string> untold_;
  std::map<std::string, Told> told_;
};

}  // namespace nos::controllers
