// A small scheduler for the sandbox and the simulator, where kube-scheduler is not: takes unbound
// pods by priority, then age, filters and scores nodes with scheduling::Framework, binds, and
// otherwise writes PodScheduled=False, Unschedulable in kube-scheduler's words. A pod that did not
// fit is tried again only when something changed that could help it. One owner thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "controllers/reconciler.h"
#include "gpu/catalogue.h"
#include "kube/event_recorder.h"

namespace nos::scheduling {
class Framework;
}

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
};

}  // namespace nos::controllers
