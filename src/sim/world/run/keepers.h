// The controllers of kube-controller-manager that a virtual cluster has. One thread.
#pragma once

#include <array>
#include <vector>

#include "sim/world/manager/workload_keeper.h"
#include "sim/world/node/claim_keeper.h"
#include "sim/world/node/pod_keeper.h"

namespace nos::sim {

class Keepers {
 public:
  // `keep_finished`: as PodKeeper's.
  Keepers(kube::Transport& api, const Clock& clock, EventLog& log,
          std::optional<Duration> keep_finished)
      : pods_(api, clock, log, keep_finished),
        claims_(api, clock, log),
        workloads_(api, clock, log) {}

  std::array<Actor*, 3> All() { return {&pods_, &claims_, &workloads_}; }
  std::array<const Actor*, 3> All() const { return {&pods_, &claims_, &workloads_}; }
  // The keepers that have, or had, objects to keep.
  std::vector<Actor*> Busy() {
    std::vector<Actor*> busy = {&pods_};
    if (claims_.any()) busy.push_back(&claims_);
    if (workloads_.any()) busy.push_back(&workloads_);
    return busy;
  }
  // Takes note of new objects; returns whether one more of them has become busy.
  bool Watch() {
    const size_t before = Busy().size();
    if (!claims_.any()) claims_.Watch();
    if (!workloads_.any()) workloads_.Watch();
    return Busy().size() > before;
  }

  // Number of pods that got a successor so far.
  int recreated() const { return pods_.recreated(); }

 private:
  PodKeeper pods_;
  ClaimKeeper claims_;
  WorkloadKeeper workloads_;
};

}  // namespace nos::sim
