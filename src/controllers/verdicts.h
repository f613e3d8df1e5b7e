// What the last plans said about each waiting pod, and the telling of it: a condition on the pod,
// an Event when slices are cut for it and one when none can be, with the reason and what would
// help. Written bit by bit, so that fifty thousand pods do not block a call; what could not be
// written is written later, after growing pauses.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcile/reconciler.h"
#include "kube/event_recorder.h"
#include "kube/work_queue.h"
#include "planning/planner.h"

namespace nos::controllers {

// Status False, reason = the first of planning::Reason::code; True once slices
// are planned for it.
inline constexpr std::string_view kPartitionedCondition = "nos.nebuly.com/Partitioned";
// What was said in an Event is not said again before this: every new text is a new object.
inline constexpr Duration kSayAgain = std::chrono::minutes(5);

class Verdicts {
 public:
  explicit Verdicts(size_t writes_per_call);

  void Add(planning::PodOutcome outcome, Time now);
  // Pods that are bound or gone need no verdict.
  void Forget(const reconcile::View& view);
  // One portion of what is due.
  void TellSome(const reconcile::View& view, kube::Client& client, kube::EventRecorder& events, Time now);
  // When there is something to tell; none: all is told.
  std::optional<Time> NextChange() const { return untold_.NextDue(); }
  const std::map<std::string, planning::PodOutcome>& all() const { return verdicts_; }

 private:
  // When a pod was last told, and the reason that the Event gave, or the slices.
  struct Told {
    Time condition{}, event{};
    std::string what;
    bool owed = false;  // an Event that could not be written
  };
  struct Portion {
    std::vector<std::string> keys;
    std::vector<kube::NamedPatch> conditions;
    std::vector<kube::EventNote> events;
    std::vector<std::string> whats;  // of the events, for Told
  };

  void Word(const planning::PodOutcome& outcome, const cluster::Pod& pod, Time now,
            Portion& portion);
  // Both return the keys of pods for which that failed. `hung`: some answer did not come in time;
  // Events are not waited for as well then.
  std::set<std::string> WriteConditions(const Portion& portion, kube::Client& client, Time now,
                                        bool& hung);
  std::set<std::string> WriteEvents(const Portion& portion, kube::Client& client,
                                    kube::EventRecorder& events, Time now, bool hung);

  size_t writes_per_call_;
  std::map<std::string, planning::PodOutcome> verdicts_;  // by pod key
  kube::WorkQueue untold_;                                // pod keys
  std::map<std::string, Told> told_;
};

}  // namespace nos::controllers
