// The objects of a live cluster that `nos get` reports, kept current by watches.
//
//   LiveObjects objects(client, {.quotas = true}, [&] { keys.Wake(); });
//   if (objects.Pump(clock.Now())) ... objects.Collect(catalogue) ...
#pragma once

#include <functional>
#include <optional>

#include "cluster/elastic_quota.h"
#include "cluster/node_pool.h"
#include "cmd/query/get_report.h"
#include "dra/objects.h"
#include "kube/cache.h"
#include "kube/client.h"

namespace nos::cmd {

// Quotas and pools are read only for their own reports, so that other reports need no rights for
// them.
struct WantedKinds {
  bool quotas = false, pools = false;
};

class LiveObjects {
 public:
  // `wake` is called from any thread when events have arrived. `client` must outlive the object.
  LiveObjects(kube::Client& client, WantedKinds wanted, const std::function<void()>& wake);

  // Takes what has arrived. True if an object has changed since the last call, and all kinds have
  // been listed.
  bool Pump(Time now);
  // The time of the next list or retry that no event announces.
  Time NextDue() const;
  // Why a kind could not be listed or watched; OK if all could.
  Status Error() const;
  // `catalogue` must outlive the result.
  LiveCluster Collect(const gpu::Catalogue& catalogue) const;

 private:
  // Calls `visit` with the cache of each wanted kind.
  template <typename Self, typename Visit>
  static void ForEach(Self& self, Visit visit);

  kube::Client& client_;
  kube::Cache<cluster::Node> nodes_;
  kube::Cache<cluster::Pod> pods_;
  std::optional<kube::Cache<cluster::ElasticQuota>> quotas_, composite_quotas_;
  std::optional<kube::Cache<dra::ResourceClaim>> claims_;  // with quotas
  std::optional<kube::Cache<cluster::NodePool>> pools_;
  bool synced_ = false;
};

}  // namespace nos::cmd
