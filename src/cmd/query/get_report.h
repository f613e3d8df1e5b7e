// Output of `nos get`, from objects to table and JSON. Pure functions.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/table.h"
#include "cluster/snapshot.h"
#include "codec/json.h"
#include "quota/balance.h"
#include "quota/charge.h"

namespace nos::cmd {

struct LiveCluster {
  // Contains nodes that have not opted in as if they had, because pods may still hold their slices.
  cluster::ClusterSnapshot snapshot;
  std::set<std::string> unmanaged;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<quota::SharedQuota> quotas = {};
  quota::ChargeRules charges = {};
  const gpu::Catalogue* catalogue = nullptr;  // null: products are named by the model label alone
  std::vector<std::shared_ptr<const cluster::NodePool>> pools = {};
};
// `catalogue` must outlive the result.
LiveCluster MakeLiveCluster(std::vector<std::shared_ptr<const cluster::Node>> nodes,
                            std::vector<std::shared_ptr<const cluster::Pod>> pods,
                            const gpu::Catalogue& catalogue);

struct Printout {
  TextTable table;
  JsonArray json{};
  std::vector<std::string> warnings{};  // one sentence each
};

// Every MIG GPU of nodes that have opted in, and GPUs of other nodes that an agent has reported.
Printout ReportGpus(const LiveCluster& live, Time now);
// Pods that request GPUs; for pending pods the partitioner's message, else the scheduler's.
Printout ReportPods(const LiveCluster& live, Time now);
// The planned layouts and their progress.
Printout ReportPlans(const LiveCluster& live, Time now);

}  // namespace nos::cmd
