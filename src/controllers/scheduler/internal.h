// What the parts of the scheduler share. Internal to it.
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
  // What became of one telling.
  struct Told {
    Telling telling;
    bool ok = true;
  };
  kube::Inbox<Answer> answers;
  kube::Inbox<std::vector<Told>> told;
  struct NotEvicted {
    std::string victim, preemptor;  // keys
    bool perhaps = false;           // nobody knows: it was not answered
  };
  kube::Inbox<NotEvicted> not_evicted;
  kube::Inbox<Telling> evicted;  // what is to be told of it
  kube::Inbox<std::pair<CutWrite, Status>> cut;
  kube::EventRecorder events{"nos-scheduler"};  // of whoever tells
  std::function<void()> wake;
  void Wake() const {
    if (wake) wake();
  }
};

inline bool RunsSomewhere(const std::shared_ptr<const cluster::Pod>& pod) {
  return pod != nullptr && !pod->node_name.empty() && !pod->Finished();
}

// Others can only be in its way: it asks neither to be near some, nor where few are.
inline bool IsOnlyHarmed(const cluster::Pod& pod) {
  return pod.pod_affinity.required.empty() && pod.spread.empty();
}

// Why nobody is evicted for a while.
inline constexpr std::string_view kAwaitsCut = "its GPUs can be cut without anybody's end.";

// How long what another scheduler promised a pod counts, from when that was seen and from when the
// last of those had to be gone who left for it. Both take longer only when that scheduler is gone.
inline constexpr Duration kForeignPromise = std::chrono::minutes(10);

// Nodes that are given up waiting for, for one pod or gang, before the next look.
inline constexpr int kMostSilentAtOnce = 100;

// Pods for which the same victims would be found, but for what each was promised itself.
std::string KindOfPreemptor(const cluster::Pod& pod);

inline std::string WhyNeverTakes(const cluster::Pod& pod) {
  return pod.preemption_policy == "Never" ? "not eligible due to preemptionPolicy=Never." : "";
}

}  // namespace nos::controllers
