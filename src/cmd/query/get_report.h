// What `nos get` prints, from objects to table and JSON. Pure.
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
  // Nodes that have not opted in are in it as if they had: pods may still hold their slices.
  cluster::ClusterSnapshot snapshot;
  std::set<std::string> unmanaged;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<quota::SharedQuota> quotas = {};
  quota::ChargeRules charges = {};
  const gpu::Catalogue* catalogue = nullptr;  // null: boards are told by models alone
  std::vector<std::shared_ptr<const cluster::NodePool>> pools = {};
};
// `catalogue` must outlive it.
LiveCluster MakeLiveCluster(std::vector<std::shared_ptr<const cluster::Node>> nodes,
                            std::vector<std::shared_ptr<const cluster::Pod>> pods,
                            const gpu::Catalogue& catalogue);

struct Printout {
  TextTable table;
  JsonArray json{};
  std::vector<std::string> warnings{};  // one sentence each
};

// Every MIG GPU of nodes that have opted in, and those of others that an agent has reported.
Printout ReportGpus(const LiveCluster& live, Time now);
// Pods that ask for GPUs; for those that wait what the partitioner says, else the scheduler.
Printout ReportPods(const LiveCluster& live, Time now);
// The layouts asked for, and how far they are applied.
Printout ReportPlans(const LiveCluster& live, Time now);

}  // namespace nos::cmd
