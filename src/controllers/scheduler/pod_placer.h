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
#include <span>
#include <string>

#include "controllers/scheduler/binding_cycle.h"
#include "controllers/scheduler/preemption/nominations.h"
#include "controllers/scheduler/profile.h"
#include "scheduling/diagnosis.h"
#include "scheduling/engine.h"

namespace nos::controllers {

class PodPlacer {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // All must outlive this object.
  // `workers` null: calls are made by the owner.
  PodPlacer(scheduling::Engine& engine, BindingCycle& bindings, const Nominations& nominations,
            const Profiles& profiles, kube::Workers* workers)
      : engine_(engine),
        bindings_(bindings),
        nominations_(nominations),
        profiles_(profiles),
        workers_(workers) {}

  // False: no node fits, see `diagnosis`. True: the pod is assumed, or a Reserve plugin failed and
  // the pod was released for a later attempt.
  bool Place(const Pod& pod, scheduling::Diagnosis& diagnosis, Time now);
  // The same, but without a trace if no node fits or a Reserve plugin fails. `among`: see Engine.
  bool PlaceAmong(const Pod& pod, std::span<const size_t> among, scheduling::Diagnosis& diagnosis);
  // No effect if the pod was released.
  void StartBinding(const std::string& key, kube::Client& client, Time now);
  // No node fits: sends the requests that may make the pod schedulable (Plugin::PostFilter).
  void PostFilter(const Pod& pod, kube::Client& client) const;

 private:
  scheduling::Engine& engine_;
  BindingCycle& bindings_;
  const Nominations& nominations_;
  const Profiles& profiles_;
  kube::Workers* workers_;
};

}  // namespace nos::controllers
