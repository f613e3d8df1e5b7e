// Nominations of pods that other schedulers serve. Quotas are shared by all schedulers, so capacity
// that was freed for a pod of another scheduler must not be given to pods served here.
//
//   ForeignNominations foreign(engine, nominations, terminating);
//   foreign.OnPod(pod, now);             // a pending pod of another scheduler was added or changed
//   foreign.OnClusterChange(now);        // nodes or quotas changed
//   foreign.ExpireUnconfirmed(now);      // on each reconcile
//
// A foreign nomination counts in the engine for ten minutes from when it was seen and from when the
// last pod evicted for it had to end. Only a scheduler that no longer runs takes longer. It counts
// only for pods with a quota, and while the node exists. Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "controllers/scheduler/preemption/nominations.h"
#include "controllers/scheduler/preemption/terminating_pods.h"
#include "scheduling/engine.h"

namespace nos::controllers {

class ForeignNominations {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // All must outlive this object.
  ForeignNominations(const scheduling::Engine& engine, Nominations& nominations,
                     const TerminatingPods& terminating)
      : engine_(engine), nominations_(nominations), terminating_(terminating) {}

  void OnPod(const Pod& pod, Time now);
  // The pod is no longer pending.
  void Forget(const std::string& pod_key) { foreign_.erase(pod_key); }
  void OnClusterChange(Time now);
  void ExpireUnconfirmed(Time now);
  std::optional<Time> NextDue() const;

  // True if the scheduler that nominated the pod, this or another one, still has to start evictions
  // for it.
  bool HasEvictionsAhead(const std::string& pod_key) const;
  // Nominations that must stay possible after evictions for the pod. Leaves out its gang and
  // foreign nominations whose evictions have not started.
  scheduling::Promises ToRespect(const cluster::Pod& pod, const std::set<std::string>& gang) const;

 private:
  struct Nomination {
    Pod pod;
    Time until;
    bool over = false;  // expired, and stays so
  };

  void Update(Nomination& nomination, Time now);

  const scheduling::Engine& engine_;
  Nominations& nominations_;
  const TerminatingPods& terminating_;
  std::map<std::string, Nomination> foreign_;  // by pod key
};

}  // namespace nos::controllers
