// The collector reports the objects of the cluster and the decisions of its controllers to a
// telemetry server.
//
//   Collector collector(catalogue, [&](std::vector<Json> records) { spool.Add(records); });
//
// It reports a pod, job, node, quota or node pool whenever a field of its record changes. When it
// becomes leader it reports everything once, with the list of all ids, so that the server drops
// objects that were deleted while no replica was reporting. It derives decisions from their traces
// in the cluster, whichever component made them: plans from node annotations, evictions by
// schedulers from pod conditions, scaling from the autoscaler's Events. It watches Jobs, Kueue's
// queues and Workloads, node pools, and Events itself (Follow).
//
// It writes nothing into the cluster. Owned by one thread.
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

#include "controllers/collector/event_tally.h"
#include "controllers/collector/jobs.h"
#include "controllers/collector/records.h"
#include "controllers/collector/watch.h"
#include "gpu/catalogue.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

// The kinds that it watches besides pods and nodes (RunnerOptions::context_kinds).
std::vector<std::string_view> CollectorKinds();

struct CollectorOptions {
  bool events = true;  // Kubernetes Events about GPUs and node pools
  WorkWatchOptions watch{};
};

class Collector final : public reconcile::Reconciler {
 public:
  using Report = std::function<void(std::vector<Json> records)>;

  // The catalogue must outlive this.
  Collector(const gpu::Catalogue& catalogue, Report report, CollectorOptions options = {});

  // Starts or stops reporting, from the next Reconcile on. Initially it does not report. Returns
  // true if this is a change.
  bool Lead(bool leads);
  // Reports everything again, after reported records were lost.
  void ReportAgain() { reported_.all = false; }
  // Key: kClusterKey. REQUIRES: Listers::changes, and CollectorKinds in the cluster context.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;
  // Processes new Jobs, queues, node pools and Events, and reports them. Call it repeatedly with
  // the view that Reconcile gets. It does nothing before Reconcile has reported everything.
  void Follow(const reconcile::Listers& view, kube::Client& client, const Clock& clock);
  // Events dropped since the start because of the rate limit.
  uint64_t events_dropped() const { return events_.dropped(); }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;

  // The last reported state of a pod.
  struct Known {
    std::string record;
    std::string ns, name;
    Time finished{};  // when the end was observed
  };
  // The last observed plan of a node.
  struct Plan {
    std::string id;  // id of the decision
    JsonObject record;
    Time made{};        // time it was made, or first observed
    bool open = false;  // its result is not known yet
    SliceCounts added;  // slices that the plan adds and no pod has taken yet
  };

  void ReportAll(const reconcile::Listers& view);
  void ReportPresent(const reconcile::Listers& view);
  void ReportPresent(std::string_view what, JsonArray ids);
  WorkSink Sink();
  // No value: the object of the Event is not known (yet).
  std::optional<bool> Concerns(const reconcile::Listers& view,
                               const cluster::KubernetesEvent& event) const;
  // Returns true if the object of the Event is known by now.
  bool TakeInEvent(const reconcile::Listers& view, const cluster::KubernetesEvent& event);
  void ReportChanges();
  void FollowContext(const reconcile::Listers& view);
  void TakeInQuotas(const reconcile::Listers& view);
  void TakeInPod(const Pod& before, const Pod& after);
  void TakeInNode(const reconcile::Listers& view, const Node& before, const Node& after);
  void ReportPod(const cluster::Pod& pod);
  void ReportNode(const reconcile::Listers& view, const std::string& name);
  void ReportQuotas();
  void ReportPools(const reconcile::Listers& view);
  void ReportPlan(const Node& before, const cluster::Node& after);
  void ReportServed(const cluster::Pod& pod);
  void ReportEviction(const cluster::Pod& pod);
  void Emit(JsonObject record);
  // Reports the record unless it equals `last`.
  void ReportNew(std::string& last, JsonObject record);
  void ReportRemoved(std::string_view what, const std::string& id);

  const gpu::Catalogue& catalogue_;
  const Report report_;
  const CollectorOptions options_;
  bool leads_ = false;
  struct {
    bool all = false;   // every object, since this process leads
    bool jobs = false;  // the ids of jobs, queues and pools
    Time all_at{};
    std::map<std::string, std::string> nodes, quotas, pools;  // last records, by name and id
  } reported_;
  Time now_{};
  std::vector<Json> records_;
  cluster::ClusterContext context_;
  std::map<std::string, std::set<std::string>> users_;        // keys of pods by key of a claim
  std::map<std::string, std::string, std::less<>> quota_of_;  // by namespace
  std::map<std::string, Known> pods_;                         // by UID
  JobTally jobs_;
  EventTally events_;
  struct {
    std::map<std::string, std::shared_ptr<const cluster::NodePool>> by_name;
    bool changed = false;    // a record may have changed
    Time due = Time::max();  // a record may change then without an event
  } pools_;
  // Events whose object is not known yet, and when they came
  std::deque<std::pair<Time, cluster::KubernetesEvent>> early_;
  const reconcile::Listers* following_ = nullptr;              // set while the watch is pumped
  std::map<std::string, std::map<std::string, Pod>> on_node_;  // by node, then by UID
  std::set<std::string> dirty_nodes_;
  std::map<std::string, Plan> plans_;  // by node
  std::unique_ptr<WorkWatch> watch_;   // last member: its callbacks use the others
};

}  // namespace nos::controllers
