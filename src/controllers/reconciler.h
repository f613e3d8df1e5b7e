// What every controller is: a function from what is there to what is written, called again and
// again.
//
// Level-triggered: it converges from any state and trusts no earlier write of its own to have been
// seen. It owns no thread, reads no clock but the one passed, and may be destroyed and made anew
// between any two calls (a crash) without harm.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/objects.h"
#include "kube/cache.h"
#include "kube/client.h"

namespace nos::controllers {

// What the caller does next.
struct Outcome {
  Status error;                   // not OK: call again with back-off, or after `again` if sooner
  std::optional<Duration> again;  // call again after this even if nothing changes

  static Outcome Done() { return {}; }
  static Outcome Again(Duration after) { return {Status::Ok(), after}; }
  static Outcome Failed(Status error) { return {std::move(error), std::nullopt}; }
};

// The caches a controller reads. The caller keeps them current.
struct View {
  const kube::Cache<cluster::Pod>& pods;
  const kube::Cache<cluster::Node>& nodes;
};

// The key of controllers that look at the whole cluster at once.
inline constexpr std::string_view kClusterKey = "cluster";

class Reconciler {
 public:
  virtual ~Reconciler() = default;
  virtual Outcome Reconcile(const std::string& key, const View& view, kube::Client& client,
                            const Clock& clock) = 0;
};

}  // namespace nos::controllers
