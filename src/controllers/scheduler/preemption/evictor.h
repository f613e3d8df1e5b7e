// Evicts pods for a preemptor, once its nomination is written.
//
//   Evictor evictor(engine, bindings, terminating, nominations, metrics, workers, wake);
//   evictor.Start({{pod, "node-1"}}, victims, for_quota, client, now);
//   Evictor::Outcome outcome = evictor.CollectResults();    // on each reconcile
//
// Start nominates the nodes in the engine at once. Evictions are sent only when all nominations are
// written: otherwise a successor of this scheduler could give the capacity to other pods. If a
// write fails, no victim is evicted and the preemptor is reported as failed.
//
// A victim is evicted as kube-scheduler does it: it gets the condition DisruptionTarget, which
// names the scheduler, and is then deleted. A victim that is not bound yet loses its reservation
// instead. A victim for a quota gets the maximum grace period if its own is longer, also if its
// deletion is under way. An eviction without an answer is repeated by Retry.
//
// Owned by one thread. API calls run on `workers` if there are any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controllers/scheduler/attempt_metrics.h"
#include "controllers/scheduler/binding_cycle.h"
#include "controllers/scheduler/preemption/nominations.h"
#include "controllers/scheduler/preemption/terminating_pods.h"
#include "controllers/scheduler/status_reporter.h"

namespace nos::controllers {

class Evictor {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Places = std::vector<std::pair<Pod, std::string>>;  // pods and nodes

  struct Outcome {
    std::vector<std::string> failed;  // keys of preemptors with a victim that was not evicted
    std::vector<PodNotice> events;    // about evicted pods
  };

  // All must outlive this object; workers may be null. `wake` is called from any thread when there
  // are results to collect.
  Evictor(scheduling::Engine& engine, BindingCycle& bindings, TerminatingPods& terminating,
          Nominations& nominations, SchedulerMetrics& metrics, kube::Workers* workers,
          std::function<void()> wake);

  // Events name the first pod of `places` as the preemptor. `for_quota`: it reclaims a quota.
  void Start(const Places& places, const std::vector<Pod>& victims, bool for_quota,
             kube::Client& client, Time now);
  // Repeats evictions for the preemptor whose outcome is unknown. Until it is known, no other
  // victim should be chosen.
  void Retry(const Pod& preemptor, bool for_quota, kube::Client& client, Time now);
  // The preemptor is no longer pending.
  void Forget(const std::string& preemptor_key) { unanswered_.erase(preemptor_key); }
  // Applies the results of API calls.
  Outcome CollectResults();

 private:
  struct Eviction;
  struct Batch;
  struct Results;

  std::optional<kube::Workers::Call> Evict(const Pod& victim, const Pod& preemptor, bool for_quota,
                                           Time now);
  static void Send(const Eviction& eviction, Results& results, kube::Client& client);

  scheduling::Engine& engine_;
  BindingCycle& bindings_;
  TerminatingPods& terminating_;
  Nominations& nominations_;
  SchedulerMetrics& metrics_;
  kube::Workers* workers_;
  std::map<std::string, std::vector<Pod>> unanswered_;  // victims by the preemptor's key
  std::shared_ptr<Results> results_;  // shared with API calls, which may end after this object
};

}  // namespace nos::controllers
