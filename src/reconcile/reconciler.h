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
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/objects.h"
#include "reconcile/around.h"
#include "kube/cache.h"
#include "kube/client.h"

namespace nos::reconcile {

// What the caller does next.
struct Outcome {
  Status error;                   // not OK: call again with back-off, or after `again` if sooner
  std::optional<Duration> again;  // call again after this even if nothing changes

  static Outcome Done() { return {}; }
  static Outcome Again(Duration after) { return {Status::Ok(), after}; }
  static Outcome Failed(Status error) { return {std::move(error), std::nullopt}; }
};

template <typename T>
struct Change {
  std::shared_ptr<const T> before, after;  // null: it was not there, it is gone
};

// What has happened in the caches since the reconciler was last called.
struct Changes {
  // The first call of this reconciler: everything may be new to it, and nothing is listed.
  bool everything = true;
  std::vector<Change<cluster::Pod>> pods;
  std::vector<Change<cluster::Node>> nodes;
  std::vector<AroundChange> around;
};

// The caches a controller reads. The caller keeps them current.
struct View {
  const kube::Cache<cluster::Pod>& pods;
  const kube::Cache<cluster::Node>& nodes;
  // Null for controllers whose runner does not watch what is around.
  const AroundCaches* around = nullptr;
  // For controllers that follow what changes rather than look at everything; may be passed over.
  const Changes* changes = nullptr;
};

// The key of controllers that look at the whole cluster at once.
inline constexpr std::string_view kClusterKey = "cluster";

class Reconciler {
 public:
  virtual ~Reconciler() = default;
  virtual Outcome Reconcile(const std::string& key, const View& view, kube::Client& client,
                            const Clock& clock) = 0;
};

}  // namespace nos::reconcile
