// Charges pods with a node to the quotas in force.
//
//   QuotaCharges charges;
//   charges.SetQuotas(snapshot.context());
//   charges.Count(pod, snapshot.Find(node));
//   charges.ledger().balance();
//
// A pod on a node that does not exist is charged the defaults of the rules.
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cluster/snapshot.h"
#include "quota/charge.h"
#include "quota/ledger.h"

namespace nos::scheduling {

class QuotaCharges {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // REQUIRES: no pod was counted before.
  void SetRules(const quota::ChargeRules& rules) {
    const auto claims = rules_.claims;
    rules_ = rules;
    rules_.claims = claims;
  }
  // From now on claims count. The caller counts the pods with claims again.
  void SetClaims(std::shared_ptr<const quota::ClaimCharges> claims) {
    rules_.claims = std::move(claims);
  }
  const quota::ChargeRules& rules() const { return rules_; }
  quota::Ledger& ledger() { return ledger_; }
  const quota::Ledger& ledger() const { return ledger_; }

  // Applies the quotas of the cluster context. Cheap if they are those of the last call.
  void SetQuotas(const cluster::ClusterContext& context);
  // Adds the pod, or replaces its charge. Null node: it is not in the snapshot.
  void Count(const Pod& pod, const cluster::NodeInfo* node);
  void Remove(const cluster::Pod& pod);

  // The charge on this node, without claims that other pods are charged for.
  quota::ChargeParts PartsOf(const cluster::Pod& pod, const cluster::NodeInfo* node) const;
  // Their total.
  quota::Amounts Of(const cluster::Pod& pod, const cluster::NodeInfo* node) const {
    return PartsOf(pod, node).Total();
  }
  bool HasQuota(const cluster::Pod& pod) const {
    return ledger_.balance().AccountOf(pod.meta.ns).has_value();
  }
  // Grows when quotas or their use change. Equal values imply equal guarantees.
  uint64_t version() const { return version_; }

 private:
  quota::Ledger ledger_;
  quota::ChargeRules rules_;
  cluster::Table<cluster::ElasticQuota> quotas_, composite_quotas_;  // as passed to the ledger
  uint64_t version_ = 0;
};

}  // namespace nos::scheduling
