// The inputs of one call of Autoscaler::Reconcile.
//
//   const ScalingCycle cycle{view, client, clock, clock.Now()};
//   options.out_of_time = cycle.TimeLimit(config.plan_timeout);
//
// A value of references, valid during the call.
#pragma once

#include <functional>

#include "base/clock.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

struct ScalingCycle {
  const reconcile::Listers& view;
  kube::Client& client;
  const Clock& clock;
  Time now;  // when the call began

  // Returns a function that is true once `budget` has passed since this call. The clock must
  // outlive it.
  std::function<bool()> TimeLimit(Duration budget) const {
    return [&clock = clock, begin = clock.Now(), budget] { return clock.Now() - begin >= budget; };
  }
};

}  // namespace nos::controllers
