// Publishes what the last plans decided for each pending pod: a condition on the pod, an Event when
// slices are created for it, and an Event with reason and remedy when none could be for half a
// minute. It writes in portions, so that fifty thousand pods do not block a call. Failed writes are
// retried with growing back-off.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/event_recorder.h"
#include "kube/work_queue.h"
#include "planning/plan.h"
#include "reconcile/reconciler.h"

namespace nos::planning {
class RemedySearch;
}

namespace nos::controllers {

// Status False with the first planning::Reason::code as reason, True once slices are planned for
// the pod.
inline constexpr std::string_view kPartitionedCondition = "nos.nebuly.com/Partitioned";
// An Event is not repeated within this time, because every new text creates a new object.
inline constexpr Duration kMinEventInterval = std::chrono::minutes(5);

class Verdicts {
 public:
  explicit Verdicts(size_t writes_per_call);
  ~Verdicts();

  void Add(planning::PodOutcome outcome, Time now);
  // Finds the remedies of verdicts that have none when they are published. Null: they stay without.
  void FindRemediesBy(std::unique_ptr<planning::RemedySearch> search);
  // Drops verdicts of pods that are bound or deleted.
  void Forget(const reconcile::Listers& view);
  // Writes one portion of what is due. A portion ends early after a few searches for remedies.
  void PublishPortion(const reconcile::Listers& view, kube::Client& client,
                      kube::EventRecorder& events, Time now);
  // When something is to be written. Absent: nothing is queued.
  std::optional<Time> NextChange() const { return unpublished_.NextDue(); }
  const std::map<std::string, planning::PodOutcome>& all() const { return verdicts_; }

 private:
  // When a condition and an Event were last written for a pod, and the reason or slices in the
  // Event.
  struct Published {
    Time condition{}, event{};
    std::string what;
    bool owed = false;  // an Event could not be written, or is not due yet
  };
  struct Portion {
    std::vector<std::string> keys;
    std::vector<kube::NamedPatch> conditions;
    std::vector<kube::EventNote> events;
    std::vector<std::string> whats;  // for Published, parallel to `events`
  };

  void Word(const planning::PodOutcome& outcome, const cluster::Pod& pod, Time now,
            Portion& portion);
  // Both return the keys of pods for which the write failed. `hung`: a write timed out. Events are
  // not tried then, because they would probably time out, too.
  std::set<std::string> WriteConditions(const Portion& portion, kube::Client& client, Time now,
                                        bool& hung);
  std::set<std::string> WriteEvents(const Portion& portion, kube::Client& client,
                                    kube::EventRecorder& events, Time now, bool hung);

  void AddRemedy(planning::PodOutcome& outcome) const;

  size_t writes_per_call_;
  std::unique_ptr<planning::RemedySearch> search_;
  std::map<std::string, planning::PodOutcome> verdicts_;  // by pod key
  kube::WorkQueue unpublished_;                           // pod keys
  std::map<std::string, Published> published_;
};

}  // namespace nos::controllers
