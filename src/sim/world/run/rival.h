// Another scheduler that binds pods of the cluster at random times (FaultRates). It knows no
// claims, schedules by the objects in the API server and repartitions no GPU.
//
//   Rival rival(env, view, framework, checks);
//   rival.Schedule();
//
// One thread.
#pragma once

#include "sim/world/checks/invariant_checker.h"
#include "sim/world/model/cluster_view.h"
#include "sim/world/node/environment.h"

namespace nos::scheduling {
class Framework;
}

namespace nos::sim {

class Rival {
 public:
  // The references must outlive the object.
  Rival(const Environment& env, ClusterView& view, const scheduling::Framework& framework,
        InvariantChecker& checks)
      : env_(env), view_(view), framework_(framework), checks_(checks) {}

  // Draws the time of its next binding.
  void Schedule();

 private:
  void Bind();

  Environment env_;
  ClusterView& view_;
  const scheduling::Framework& framework_;
  InvariantChecker& checks_;
};

}  // namespace nos::sim
