// The collector: tells a telemetry server what is in the cluster and what is decided there.
//
//   Collector collector(catalogue, [&](std::vector<Json> records) { spool.Add(records); });
//
// Of pods, jobs, nodes, quotas and node pools it tells each again whenever something of it has
// changed that a record shows, and once everything when it begins to lead: then, too, who all is
// there, so that what vanished while nobody told is not believed in for ever. Decisions it reads
// off what they leave in the cluster, whoever made them: plans off the nodes' annotations,
// evictions by schedulers off the pods' conditions, scaling off the autoscaler's Events. Jobs,
// Kueue's queues and Workloads, node pools, and Events it watches itself (Follow).
//
// It writes nothing into the cluster. One owner thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/collector/events.h"
#include "controllers/collector/jobs.h"
#include "controllers/collector/records.h"
#include "controllers/collector/watch.h"
#include "gpu/catalogue.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

// The kinds it watches beside pods and nodes (RunnerOptions::around_kinds).
std::vector<std::string_view> CollectorKinds();

struct CollectorOptions {
  bool events = true;  // of Kubernetes, about GPUs and node pools
  WorkWatchOptions watch{};
};

class Collector final : public reconcile::Reconciler {
 public:
  using Report = std::function<void(std::vector<Json> records)>;

  // The catalogue must outlive it.
  Collector(const gpu::Catalogue& catalogue, Report report, CollectorOptions options = {});

  // Whether it tells anything, from the next look on; at first it does not. Returns whether that is
  // new.
  bool Lead(bool leads);
  // Tells everything once more: something that it told was lost.
  void TellAgain() { told_all_ = false; }
  // Key: kClusterKey. Needs View::changes, and CollectorKinds around.
  reconcile::Outcome Reconcile(const std::string& key, const reconcile::View& view,
                               kube::Client& client, const Clock& clock) override;
  // Takes what has come of Jobs, queues, node pools and Events, and tells it. To be called again
  // and again, with the view that Reconcile gets; does nothing before that has told everything.
  void Follow(const reconcile::View& view, kube::Client& client, const Clock& clock);
  // Events that were not told since the start: there were too many at once.
  uint64_t events_dropped() const { return events_.dropped(); }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;

  // A pod, as it was told.
  struct Known {
    std::string record;
    Time finished{};  // when that was seen
  };
  // The last plan of a node that was seen to be made.
  struct Plan {
    std::string id;  // of the decision
    JsonObject record;
    Time made{};        // or found
    bool open = false;  // nobody knows yet what became of it
    SliceCounts added;  // of those that it made more of: what no pod has taken
  };

  void TellAll(const reconcile::View& view);
  void TellPresent(const reconcile::View& view);
  void TellPresent(std::string_view what, JsonArray ids);
  WorkSink Sink();
  // Nothing: what it is about is not known (yet).
  std::optional<bool> Concerns(const reconcile::View& view,
                               const cluster::KubernetesEvent& event) const;
  // Whether it is known by now what it is about.
  bool TakeInEvent(const reconcile::View& view, const cluster::KubernetesEvent& event);
  void TellChanges();
  void TakeInQuotas(const reconcile::View& view);
  void TakeInPod(const Pod& before, const Pod& after);
  void TakeInNode(const reconcile::View& view, const Node& before, const Node& after);
  void TellPod(const cluster::Pod& pod);
  void TellNode(const reconcile::View& view, const std::string& name);
  void TellQuotas();
  void TellPools(const reconcile::View& view);
  void TellPlan(const Node& before, const cluster::Node& after);
  void TellServed(const cluster::Pod& pod);
  void TellEviction(const cluster::Pod& pod);
  void Tell(JsonObject record);
  // Unless it was told so already.
  void TellNew(std::string& told, JsonObject record);
  void TellRemoved(std::string_view what, const std::string& id);

  const gpu::Catalogue& catalogue_;
  const Report report_;
  const CollectorOptions options_;
  bool leads_ = false, told_all_ = false;
  bool told_jobs_ = false;  // which jobs, queues and pools there are
  Time all_told_at_{};
  Time now_{};
  std::vector<Json> records_;
  cluster::Surroundings around_;
  std::map<std::string, std::string, std::less<>> quota_of_;  // by namespace
  std::map<std::string, Known> pods_;                         // by uid
  JobTally jobs_;
  EventTally events_;
  // By name, as they are and as they were told; whether that may be otherwise now, and when at the
  // latest.
  std::map<std::string, std::shared_ptr<const cluster::NodePool>> pools_;
  std::map<std::string, std::string> told_pools_;
  bool pools_changed_ = false;
  Time pools_due_ = Time::max();
  std::deque<std::pair<Time, cluster::KubernetesEvent>> early_;  // and when they came
  const reconcile::View* following_ = nullptr;                   // while the watch is pumped
  std::map<std::string, std::string> nodes_, quotas_;            // what was told, by name and id
  std::map<std::string, std::map<std::string, Pod>> on_node_;    // by node, by uid
  std::set<std::string> dirty_nodes_;
  std::map<std::string, Plan> plans_;  // by node
  std::unique_ptr<WorkWatch> watch_;   // last: it tells the others
};

}  // namespace nos::controllers
