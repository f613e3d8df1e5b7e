// Declarations shared by the scheduler's source files. Internal to it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controllers/scheduler.h"
#include "kube/event_recorder.h"

namespace nos::controllers {

struct Scheduler::Shared {
  // The result of publishing one condition or Event.
  struct Told {
    EventQueue telling;
    bool ok = true;
  };
  kube::Inbox<Answer> answers;
  kube::Inbox<std::vector<Told>> told;
  struct NotEvicted {
    std::string victim, preemptor;  // keys
    bool perhaps = false;           // the call was not answered, so the outcome is unknown
  };
  kube::Inbox<NotEvicted> not_evicted;
  kube::Inbox<EventQueue> evicted;  // Events to publish about evictions
  kube::Inbox<std::pair<CutWrite, Status>> cut;
  kube::EventRecorder events{"nos-scheduler"};  // used by calls that publish
  std::function<void()> wake;
  void Wake() const {
    if (wake) wake();
  }
};

inline bool RunsSomewhere(const std::shared_ptr<const cluster::Pod>& pod) {
  return pod != nullptr && !pod->node_name.empty() && !pod->Finished();
}

// Other pods can only make it unschedulable: it has neither a required pod affinity nor a spread
// constraint.
inline bool HasNoPositiveInterPodConstraints(const cluster::Pod& pod) {
  return pod.pod_affinity.required.empty() && pod.spread.empty();
}

// The reason why no pod is evicted for now.
inline constexpr std::string_view kAwaitsCut = "its GPUs can be cut without anybody's end.";

// How long a nomination by another scheduler counts, from when it was seen and from when the last
// pod evicted for it had to end. Only a scheduler that no longer runs takes longer.
inline constexpr Duration kForeignPromise = std::chrono::minutes(10);

// Limit of nodes counted as silent in one attempt for one pod or gang.
inline constexpr int kMaxSilentAtOnce = 100;

// Pods with the same value have the same victims, except for their own nominations.
std::string KindOfPreemptor(const cluster::Pod& pod);

inline std::string WhyNeverTakes(const cluster::Pod& pod) {
  return pod.preemption_policy == "Never" ? "not eligible due to preemptionPolicy=Never." : "";
}

}  // namespace nos::controllers
