// What nos says of GPUs to a kube-scheduler that asks it: the four verbs of a scheduler extender.
//
//   filter      refuses nodes that have no room for what the pod asks of GPUs ("nvidia.com/...")
//   prioritize  0 to 10: where the pod strands least of what GPUs can still serve (GpuPacking)
//   bind        binds the pod; from then on it counts, before any watch shows it
//   preempt     leaves out nodes where the victims would not make that room
//
// Nothing else of the pod or the nodes is looked at: that is kube-scheduler's. Decisions come from
// the caches of the runner; Reconcile takes in what has changed there, and writes nothing.
//
//   Extender extender(catalogue);
//   Runner runner(extender, transport);
//   ... extender.Handle("filter", body, client) ...   // any thread
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/extender/messages.h"
#include "reconcile/reconciler.h"
#include "gpu/catalogue.h"
#include "scheduling/engine.h"

namespace nos::controllers {

class Extender final : public reconcile::Reconciler {
 public:
  struct Answer {
    int code = 200;    // of HTTP
    std::string body;  // JSON; of an error, text
  };

  // The catalogue must outlive it. `assume_for`: how long a pod counts that was bound, while no
  // watch shows it.
  explicit Extender(const gpu::Catalogue& catalogue,
                    Duration assume_for = std::chrono::seconds(30));

  // Key: kClusterKey. Needs View::changes.
  reconcile::Outcome Reconcile(const std::string& key, const reconcile::View& view, kube::Client& client,
                    const Clock& clock) override;

  // `body` is whatever a client has sent. Code 400: it is not what the verb takes; 404: no such
  // verb. What goes wrong beyond that is in the protocol's own field Error. Thread-safe.
  Answer Handle(std::string_view verb, std::string_view body, kube::Client& client,
                const Clock& clock);

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  struct Assumed {
    Pod pod;
    std::string node;
    Time until;
  };

  Answer Filter(ExtenderNodes nodes);
  Answer Prioritize(const ExtenderNodes& nodes);
  Answer Bind(const ExtenderBinding& binding, kube::Client& client, const Clock& clock);
  Answer Preempt(const ExtenderVictims& victims);
  // Counts the pod on its node. Error: why it must not be bound there.
  Status Assume(const Pod& pod, const std::string& node, Time now, std::optional<Assumed>& before);
  void Restore(const std::optional<Assumed>& before);
  void Forget(const std::string& key);
  void TakeInPod(const Pod& before, const Pod& after);
  // What the framework says of the pod, reduced to what it asks of GPUs.
  scheduling::Verdict Ask(const cluster::Pod& asked, const cluster::ClusterSnapshot& snapshot,
                          std::string_view node) const;

  const scheduling::Framework framework_;
  const Duration assume_for_;
  std::mutex mutex_;  // of all below
  scheduling::Engine engine_;
  bool synced_ = false;
  std::map<std::string, Pod> waiting_;      // by key
  std::map<std::string, Assumed> assumed_;  // by key
  scheduling::CycleState learnt_;
  size_t changes_since_learning_ = 1, pods_known_ = 0;
};

}  // namespace nos::controllers
