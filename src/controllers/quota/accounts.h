// The quotas in force and the pods that count in them, as the caches show both.
//
//   QuotaAccounts accounts(config.charges);
//   accounts.Rebuild(view);                              // then, change by change:
//   if (accounts.Apply(change).terms_changed) accounts.PutInForce();
//   accounts.Count(view, pod);
//   if (const auto account = accounts.Find("elasticquotas/team-a/quota")) accounts.terms(*account);
//
// An account is the index of a quota in force (quota/balance.h); PutInForce numbers them again.
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/context.h"
#include "kube/client.h"
#include "quota/charge.h"
#include "quota/ledger.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

// The resource of quotas: ElasticQuotas or CompositeElasticQuotas.
const kube::Resource& QuotaResource(bool composite);
// "elasticquotas/team-a/quota"
std::string NameOf(const cluster::ElasticQuota& quota);
// The pod counts: it has a node and has not finished.
bool HasNode(const cluster::Pod& pod);

// A change of one quota.
struct QuotaChange {
  std::string name{};  // empty: another object has changed
  bool terms_changed = false;
};

class QuotaAccounts {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  explicit QuotaAccounts(quota::ChargeRules charges);
  QuotaAccounts(const QuotaAccounts&) = delete;

  // Takes all quotas and pods from the caches. PutInForce must follow.
  void Rebuild(const reconcile::Listers& view);
  QuotaChange Apply(const reconcile::ContextChange& change);
  // The pods whose charge a change of a claim may have changed.
  std::vector<Pod> UsersOf(const reconcile::ContextChange& change) const;
  // Puts the quotas of the caches in force.
  void PutInForce();
  // Updates the charge of a pod.
  void Count(const reconcile::Listers& view, const Pod& pod);
  void Remove(const std::string& pod) { ledger_.RemovePod(pod); }
  // True if pods on the node are charged differently after the change.
  bool ChangesCharges(const reconcile::Change<cluster::Node>& change) const;

  // All quotas of the caches, in force or not, and claims.
  const cluster::ClusterContext& context() const { return context_; }
  quota::Ledger& ledger() { return ledger_; }
  const quota::Balance& balance() const { return ledger_.balance(); }
  const quota::ChargeRules& charges() const { return charges_; }
  // By the quotas' names.
  const std::map<std::string, size_t>& by_name() const { return by_name_; }
  std::optional<size_t> Find(const std::string& name) const;
  const cluster::ElasticQuota& QuotaOf(size_t account) const;
  // The parts of the quota that are not in force, and why.
  const std::vector<std::string>& ProblemsOf(size_t account) const { return problems_[account]; }

 private:
  cluster::ClusterContext context_;
  const quota::ChargeRules charges_;  // refers to context_
  quota::Ledger ledger_;
  std::map<std::string, size_t> by_name_;
  std::vector<std::vector<std::string>> problems_;  // by account
};

}  // namespace nos::controllers
