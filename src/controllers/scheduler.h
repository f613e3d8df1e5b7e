// A small scheduler for the sandbox and the simulator, where kube-scheduler is not: takes unbound
// pods by priority, then age, filters and scores nodes with scheduling::Framework, binds, and
// otherwise writes PodScheduled=False, Unschedulable in kube-scheduler's words. A pod that did not
// fit is tried again only when something changed that could help it. One owner thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "controllers/reconciler.h"
#include "gpu/catalogue.h"
#include "kube/event_recorder.h"

namespace nos::scheduling {
class CycleState;
class Framework;
}  // namespace nos::scheduling

namespace nos::controllers {

struct SchedulerConfig {
  std::set<std::string> scheduler_names = {"", "default-scheduler", "nos-scheduler"};
  // A binding that is not seen after this long is taken as not done.
  Duration assume_for = std::chrono::seconds(30);
  size_t binds_per_call = 500;
};

class Scheduler final : public Reconciler {
 public:
  Scheduler(SchedulerConfig config, const scheduling::Framework& framework,
            const gpu::Catalogue& catalogue);

  // Key: kClusterKey.
  Outcome Reconcile(const std::string& key, const View& view, kube::Client& client,
                    const Clock& clock) override;

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;
  // A binding that the caches do not show yet.
  struct Assumed {
    Pod pod;
    std::string node;
    Time until{};
  };

  // Why pods of one kind found no node, by all that filters read of them. Within one pass over the
  // pods nodes only fill up: the next pod of the kind need not be tried.
  using Refusals = std::map<std::string, std::string>;

  bool NodesImproved(const View& view);
  bool PodsLeft(const View& view);
  void ForgetSettled(const View& view, Time now);
  std::vector<Pod> Waiting(const View& view) const;
  bool AlreadyTried(const Pod& pod) const;
  cluster::ClusterSnapshot Picture(const View& view) const;
  Status TryAll(const std::vector<Pod>& waiting, const View& view, kube::Client& client, Time now);
  Status TryOne(const Pod& pod, cluster::ClusterSnapshot& snapshot,
                const scheduling::CycleState& learnt, Refusals& refusals, kube::Client& client,
                Time now);
  Status BindTo(const std::string& node, const Pod& pod, cluster::ClusterSnapshot& snapshot,
                kube::Client& client, Time now);
  Status Refuse(const Pod& pod, const std::string& why, kube::Client& client, Time now);

  SchedulerConfig config_;
  const scheduling::Framework& framework_;
  const gpu::Catalogue& catalogue_;
  kube::EventRecorder events_{"nos-scheduler"};
  std::map<std::string, Assumed> assumed_;    // by pod key
  std::map<std::string, Pod> unfit_;          // tried in vain since things last got better
  std::map<std::string, Node> nodes_;         // as last seen
  std::map<std::string, std::string> bound_;  // pod key -> uid, as last seen
};

}  // namespace nos::controllers
