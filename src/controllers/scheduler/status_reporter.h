// Publishes the scheduler's results as the condition PodScheduled and as Events of pods.
//
//   StatusReporter status(engine, profiles, workers, wake, options);
//   status.Report({pod, "Unschedulable", message, true}, now);
//   status.CollectResults(now);           // on each reconcile
//   status.Publish(client, load, now);    // one portion, if none is in flight
//
// Only the latest condition of a pod is kept until it is written. A condition that the pod already
// has is not written again. The Event FailedScheduling is a warning, so it follows only if the pod
// is still refused after a time: most pods that need slices are refused until these are created,
// within seconds. A refused pod's message gets a remedy (scheduling/explain.h), which is searched
// while the scheduler has nothing else to do, so it may follow later. If the pod is refused again
// in the same words, the remedy is searched again after a time, and written if it has changed,
// without an Event.
//
// A failed write is retried with back-off. Events are best effort. Owned by one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "controllers/scheduler/profile.h"
#include "kube/event_recorder.h"
#include "kube/work_queue.h"
#include "kube/workers.h"
#include "scheduling/engine.h"
#include "scheduling/reasons.h"

namespace nos::controllers {

// The reason of PodScheduled while a pod waits for its instances. It differs from Unschedulable,
// because an autoscaler must not add a node for a pod that has one.
inline constexpr std::string_view kPartitioningGpus = scheduling::codes::kPartitioningGpus;

// A condition or Event to publish for a pod.
struct PodNotice {
  std::shared_ptr<const cluster::Pod> pod;
  std::string reason = {}, message = {};      // of the condition PodScheduled
  bool explain = false;                       // a remedy is to be added to the message
  std::optional<kube::EventNote> event = {};  // set: only this Event is published
  int conflicts = 0;                          // conflicts when the condition was written
  bool only_remedy = false;                   // new is only the remedy
  bool warns = false;                         // the condition comes with the Event FailedScheduling
};

class StatusReporter {
 public:
  struct Options {
    // Conditions, and as many Events, written per call; while pods are being bound; kinds of pods
    // for which a remedy is searched per call.
    size_t per_call, per_call_while_binding, remedies_per_call;
    // How often remedies are searched while pods are to be scheduled or are being bound.
    Duration busy_remedies_interval;
    // Limit of pending conditions. Beyond it, the condition is written at the pod's next refusal.
    size_t max_pending;
    Duration warn_after;  // time from the first refusal to the first Event FailedScheduling
    Duration refresh_remedies_after;  // time from a refusal in known words to a new search
  };
  // Other work of the scheduler, which takes precedence.
  struct Load {
    bool scheduling = false;  // pods are to be scheduled
    bool binding = false;     // Bind calls are in flight
  };

  // Engine, profiles and workers (null: calls are made by the owner) must outlive this object.
  // `wake` is called from any thread when there are results to collect.
  StatusReporter(const scheduling::Engine& engine, const Profiles& profiles, kube::Workers* workers,
                 std::function<void()> wake, Options options);

  void Report(PodNotice notice, Time now);
  // The pod is no longer pending: no remedy is searched for it, and no warning follows.
  void OnNotPending(const std::string& pod_key);
  // Drops the condition of a deleted pod. Events about it are still published.
  void OnDeleted(const std::string& pod_key);

  // Applies the results of API calls.
  void CollectResults(Time now);
  void Publish(kube::Client& client, Load load, Time now);
  // Absent: nothing is pending, or a call is in flight.
  std::optional<Time> NextDue(Load load, Time now) const;

 private:
  struct Written;
  struct Results;
  struct Refused {
    std::string uid;
    Time warn_from;
    std::optional<PodNotice> notice;  // the latest without an Event
  };

  void SetAsideEvent(const std::string& key, const std::string& successor, Time now);
  void ExplainLater(PodNotice notice);
  void RefreshLater(PodNotice notice, Time now);
  void TakeRefreshes(std::vector<PodNotice>& to, Time now);
  Time WhenToExplain(Load load, Time now) const;
  std::vector<PodNotice> ExplainSome(Load load, Time now);
  void AddRemedies(std::vector<PodNotice>& notices) const;
  std::string RemedyFor(const cluster::Pod& pod, const SchedulerProfile& profile) const;
  std::vector<PodNotice> TakePortion(Load load, Time now);
  void DecideOnWarning(PodNotice& notice, Time now);
  void AddDueWarnings(std::vector<PodNotice>& portion, Time now);

  const scheduling::Engine& engine_;
  const Profiles& profiles_;
  kube::Workers* workers_;
  const Options options_;
  std::map<std::string, PodNotice> notices_;  // by pod key
  kube::WorkQueue queue_;                     // keys of notices_
  // By pod key; published, but without a remedy yet.
  std::map<std::string, PodNotice> unexplained_;
  // By pod key; published with a remedy that may have changed since.
  std::map<std::string, PodNotice> to_refresh_;
  kube::WorkQueue refreshes_;               // keys of to_refresh_
  std::map<std::string, Refused> refused_;  // pending pods, by key
  kube::WorkQueue warnings_;                // keys of refused_
  Time remedies_due_{};
  bool in_flight_ = false;            // a call that publishes
  std::shared_ptr<Results> results_;  // shared with API calls, which may end after this object
};

}  // namespace nos::controllers
