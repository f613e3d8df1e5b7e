// Output of `nos get`, from objects to table and JSON. Pure functions.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/selectors.h"
#include "cluster/snapshot.h"
#include "cmd/query/printout.h"
#include "dra/objects.h"
#include "quota/balance.h"
#include "quota/charge.h"

namespace nos::cmd {

// The objects to report. Others still hold GPUs, lend and borrow.
struct Selection {
  std::string ns;  // "": all namespaces
  cluster::LabelSelector labels{};
  // "NAME" or "NAMESPACE/NAME"; of GPUs "NODE" or "NODE/INDEX". Empty: all.
  std::set<std::string> names{};

  bool Takes(const cluster::ObjectMeta& meta) const;
  bool TakesGpu(const cluster::ObjectMeta& node, int index) const;
};

struct LiveCluster {
  // Contains nodes that have not opted in as if they had, because pods may still hold their slices.
  cluster::ClusterSnapshot snapshot;
  std::set<std::string> unmanaged;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<quota::SharedQuota> quotas = {};
  quota::ChargeRules charges = {};
  // Quotas charge these for the devices that are allocated to them.
  std::vector<std::shared_ptr<const dra::ResourceClaim>> claims = {};
  const gpu::Catalogue* catalogue = nullptr;  // null: products are named by the model label alone
  std::vector<std::shared_ptr<const cluster::NodePool>> pools = {};
  Selection selection = {};
  std::optional<Time> server_time = {};  // on the clock of the API server; nullopt: not known
};
// `catalogue` must outlive the result.
LiveCluster MakeLiveCluster(std::vector<std::shared_ptr<const cluster::Node>> nodes,
                            std::vector<std::shared_ptr<const cluster::Pod>> pods,
                            const gpu::Catalogue& catalogue);

// Slots of a GPU that used instances take; nullopt if its instances overlap.
std::optional<int> UsedSlots(const cluster::Gpu& gpu);

// Sums over the GPUs of a node or of a cluster. Each GPU weighs the same, whatever its slots are.
struct GpuSums {
  size_t gpus = 0, with_pods = 0;
  double used = 0;    // GPUs' worth of slots
  bool known = true;  // the slots of all are

  void Add(const cluster::Gpu& gpu);
  std::string UsedText() const;  // "61 %"
};

// GPUs of nodes that have opted in, and GPUs of other nodes that an agent has reported: those that
// `nos get gpus` lists, with the node's index in the snapshot.
struct ListedGpu {
  size_t node = 0;
  const cluster::Gpu* gpu = nullptr;
  bool managed = false;
};
std::vector<ListedGpu> ListedGpus(const LiveCluster& live);
// The time in the cluster, for ages: on the clock of its API server, which may differ from this
// machine's, as in a sandbox whose time runs faster. Without one, on this machine's clock. The
// newest time in its objects if that is later.
Time TimeIn(const LiveCluster& live);
// The creation of an object, if the API server has said it.
std::optional<Time> CreatedOf(const cluster::ObjectMeta& meta);

// "1xmig-1g.5gb 2xgpu": the GPU resources of a pod's requests; "" if it requests none.
std::string GpuRequestsText(const cluster::Pod& pod);

Printout ReportGpus(const LiveCluster& live, Time now);
// Nodes that have such GPUs, with the number of GPUs by state.
Printout ReportNodes(const LiveCluster& live, Time now);
// Pods that request GPUs; for pending pods the partitioner's message, else the scheduler's.
Printout ReportPods(const LiveCluster& live, Time now);
// The planned layouts and their progress.
Printout ReportPlans(const LiveCluster& live, Time now);

}  // namespace nos::cmd
