// Publishes the namespaces of all CompositeElasticQuotas in a ConfigMap, for the admission policy
// on pods under quotas: the API server shows a policy the quotas of the pod's own namespace, and a
// composite quota lies in another one.
//
//   CoveredNamespaces covered("nos", "nos-quota-namespaces", metrics);
//   covered.OnQuotaChange();
//   covered.Find(context, now);               // queues a change
//   NOS_RETURN_IF_ERROR(covered.Write(client, now));
//
// The ConfigMap exists already; data.namespaces becomes ",team-a,team-b,", sorted. It is written
// when it changes, after Restart, and every kRefresh in case somebody else has changed it. While it
// is missing nothing is published. Owned by one thread.
#pragma once

#include <chrono>
#include <string>

#include "cluster/context.h"
#include "controllers/quota/patch_queue.h"
#include "kube/client.h"

namespace nos::controllers {

class CoveredNamespaces {
 public:
  static constexpr Duration kRefresh = std::chrono::minutes(10);

  // `name`: of the ConfigMap; empty: nothing is published. `metrics` may be null, and must outlive
  // this.
  CoveredNamespaces(std::string ns, std::string name, Metrics* metrics);

  // Forgets what was written.
  void Restart();
  void OnQuotaChange() { outdated_ = true; }
  void Find(const cluster::ClusterContext& context, Time now);
  // Error: the ConfigMap could not be written; it is written again after a back-off.
  Status Write(kube::Client& client, Time now);
  // Time::max(): nothing is published.
  Time NextDue() const;

 private:
  const std::string ns_, name_;
  PatchQueue due_;
  bool outdated_ = true;
  std::string wanted_;
  Time refresh_{};  // time of the next write without a change
};

}  // namespace nos::controllers
