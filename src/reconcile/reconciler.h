// The interface of every controller: a function that reads the caches and writes to the cluster,
// called again and again.
//
// It is level-triggered: it converges from any state and does not rely on its earlier writes being
// visible. It owns no thread and uses only the clock that is passed. It may be destroyed and
// created again between any two calls, as after a crash.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/objects.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "reconcile/context_caches.h"

namespace nos::reconcile {

// The result of a reconciliation: when to call again.
struct ReconcileResult {
  Status error;                   // not OK: call again with back-off, or after `again` if sooner
  std::optional<Duration> again;  // call again after this even if nothing changes

  static ReconcileResult Done() { return {}; }
  static ReconcileResult Again(Duration after) { return {Status::Ok(), after}; }
  static ReconcileResult Failed(Status error) { return {std::move(error), std::nullopt}; }
};

template <typename T>
struct Change {
  std::shared_ptr<const T> before, after;  // null: the object was created or deleted
};

// Changes in the caches since the last call of the reconciler.
struct Changes {
  // True on the first call of a reconciler: the lists are empty and the whole cache may be new to
  // it.
  bool everything = true;
  std::vector<Change<cluster::Pod>> pods;
  std::vector<Change<cluster::Node>> nodes;
  std::vector<ContextChange> context;
};

// The caches that a controller reads. The runner keeps them current.
struct Listers {
  const kube::Cache<cluster::Pod>& pods;
  const kube::Cache<cluster::Node>& nodes;
  // Null if the runner does not watch the cluster context.
  const ContextCaches* context = nullptr;
  // For controllers that process changes instead of the whole cache; others ignore it.
  const Changes* changes = nullptr;
};

// The key of controllers that reconcile the whole cluster at once.
inline constexpr std::string_view kClusterKey = "cluster";

class Reconciler {
 public:
  virtual ~Reconciler() = default;
  virtual ReconcileResult Reconcile(const std::string& key, const Listers& view,
                                    kube::Client& client, const Clock& clock) = 0;
};

}  // namespace nos::reconcile
