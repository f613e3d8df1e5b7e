// Handles GPUs for kube-scheduler: the four verbs of a scheduler extender.
//
//   filter      refuses nodes without capacity for the pod's GPU requests ("nvidia.com/...")
//   prioritize  0 to 10: highest where the pod strands the least GPU capacity (GpuPacking)
//   bind        binds the pod; it is assumed on its node until the watch shows it
//   preempt     leaves out nodes where evicting the victims would not free that capacity
//
// It looks at nothing else of pods and nodes, which kube-scheduler checks itself. Decisions use the
// runner's caches. Reconcile takes their changes in and writes nothing.
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
#include "gpu/catalogue.h"
#include "reconcile/reconciler.h"
#include "scheduling/engine.h"

namespace nos::controllers {

class Extender final : public reconcile::Reconciler {
 public:
  struct Answer {
    int code = 200;    // of HTTP
    std::string body;  // JSON; text for an error
  };

  // The catalogue must outlive this object. `assume_for`: how long a bound pod is assumed while the
  // watch does not show it.
  explicit Extender(const gpu::Catalogue& catalogue,
                    Duration assume_for = std::chrono::seconds(30));
  ~Extender() override;

  // Key: kClusterKey. Needs Listers::changes.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;

  // `body` is untrusted input. Code 400: the body does not match the verb; 404: unknown verb. Other
  // errors are in the protocol's own field Error. Thread-safe.
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
  // Assumes the pod on the node. Error: why it must not be bound there.
  Status Assume(const Pod& pod, const std::string& node, Time now, std::optional<Assumed>& before);
  void Restore(const std::optional<Assumed>& before);
  void Forget(const std::string& key);
  void TakeInPod(const Pod& before, const Pod& after);
  // The framework's verdict on the pod, reduced to its GPU requests.
  scheduling::Verdict Ask(const cluster::Pod& asked, const cluster::ClusterSnapshot& snapshot,
                          std::string_view node) const;

  const std::unique_ptr<const scheduling::Framework> framework_;
  const Duration assume_for_;
  std::mutex mutex_;  // guards all members below
  scheduling::Engine engine_;
  bool synced_ = false;
  std::map<std::string, Pod> waiting_;      // by key
  std::map<std::string, Assumed> assumed_;  // by key
  scheduling::CycleState precomputed_;
  size_t changes_since_learning_ = 1, pods_known_ = 0;
};

}  // namespace nos::controllers
