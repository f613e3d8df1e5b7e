// Chooses a node for one pod and reserves resources there.
//
//   PodPlacer placer(engine, bindings, nominations, profiles);
//   scheduling::Diagnosis diagnosis;
//   if (placer.Place(pod, diagnosis, now)) placer.StartBinding(pod->Key(), client, now);
//
// A placed pod is assumed (BindingCycle::Find) until its binding is started or abandoned. Owned by
// one thread.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "controllers/scheduler/binding_cycle.h"
#include "controllers/scheduler/preemption/nominations.h"
#include "controllers/scheduler/profile.h"
#include "scheduling/diagnosis.h"
#include "scheduling/engine.h"
#include "scheduling/plugins/dynamic_resources/doubtful_claims.h"

namespace nos::controllers {

class PodPlacer {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // All must outlive this object.
  // `workers` null: calls are made by the owner.
  PodPlacer(scheduling::Engine& engine, BindingCycle& bindings, const Nominations& nominations,
            const Profiles& profiles, kube::Workers* workers, Duration takeover_timeout)
      : engine_(engine),
        bindings_(bindings),
        nominations_(nominations),
        profiles_(profiles),
        workers_(workers),
        takeover_timeout_(takeover_timeout) {}

  // False: no node fits, see `diagnosis`. True: the pod is assumed, or a Reserve plugin failed and
  // the pod was released for a later attempt.
  bool Place(const Pod& pod, scheduling::Diagnosis& diagnosis, Time now);
  // The same, but without a trace if no node fits or a Reserve plugin fails. `among`: see Engine.
  bool PlaceAmong(const Pod& pod, std::span<const size_t> among, scheduling::Diagnosis& diagnosis);
  // No effect if the pod was released.
  void StartBinding(const std::string& key, kube::Client& client, Time now);
  // To be called before the first decision; later calls have no effect. For `takeover_timeout` from
  // then on a binding that an earlier leader has sent may still arrive. The pod would have a node
  // without its devices if claims that are allocated now were given back meanwhile.
  void Begin(Time now);
  // No node fits: sends the requests that may make the pod schedulable (Plugin::PostFilter), or
  // holds them back after the start.
  void PostFilter(const Pod& pod, kube::Client& client, Time now);
  // Keys of pods whose requests were held back, once they need not be.
  std::set<std::string> TakeHeld(Time now);
  // `pod`: the last known state of a pod that has ended. `deleted`: its object is gone.
  void OnGone(const Pod& pod, bool deleted, Time now);
  // Sends requests that release the devices of pods that are gone: devices in doubt
  // (DoubtfulClaims), and devices of victims. Kubernetes' claim controller releases all others, and
  // those of victims if a request fails.
  void GiveBackDevices(kube::Client& client, Time now);
  // When TakeHeld or GiveBackDevices have something to do. Absent: never.
  std::optional<Time> NextDue() const;

 private:
  bool UsesInherited(const cluster::Pod& pod) const;
  // True if the pod was evicted for another one, and the kubelet has ended its containers.
  bool IsEndedVictim(const cluster::Pod& pod) const;

  scheduling::Engine& engine_;
  BindingCycle& bindings_;
  const Nominations& nominations_;
  const Profiles& profiles_;
  kube::Workers* workers_;
  const Duration takeover_timeout_;
  std::optional<Time> settled_;
  std::set<std::string> inherited_;  // keys of claims that were allocated at the start
  std::set<std::string> held_;       // keys of pods
  scheduling::DoubtfulClaims doubtful_;
  std::vector<Pod> ended_victims_;  // whose devices are to be released
};

}  // namespace nos::controllers
