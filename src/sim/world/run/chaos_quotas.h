// Elastic quotas of a fault simulation: drawn from its seed, changed during the run, and the
// entitlements at the end.
//
//   ChaosQuotas quotas(world, seed);      // half of all seeds have none
//   pod.ns = quotas.DrawNamespace();
//   quotas.Add(options.faults_last);      // creates them, and changes them until then
//   if (!quotas.LetsIn(together, pods)) ...
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "quota/ledger.h"
#include "sim/world.h"

namespace nos::sim {

class ChaosQuotas {
 public:
  using Pods = std::vector<std::shared_ptr<const cluster::Pod>>;

  // `always`: no seed is without quotas.
  ChaosQuotas(World& world, uint64_t seed, bool always = false);

  bool any() const { return any_; }
  // For pods that belong to no gang; "default" if there are no quotas.
  std::string DrawNamespace();
  Status Add(Duration changes_last);
  // Creates these instead, and changes none.
  Status AddFixed(std::vector<PlainQuota> quotas);

  // True if quotas admit these pods in addition to those with a node.
  bool LetsIn(const std::vector<const cluster::Pod*>& together, const Pods& pods) const;
  // True if min of the pod's quota covers it in addition to the pods with a node.
  bool IsGuaranteed(const cluster::Pod& pod, const Pods& pods) const;
  // Pods with a node that may all be evicted for the guarantee of this pod's quota; empty if the
  // min of its quota does not cover the pod.
  Pods MayGoFor(const cluster::Pod& pod, const Pods& pods) const;
  // A readable line for each quota.
  std::vector<std::string> Describe(const Pods& pods) const;

 private:
  PlainQuota Draw(std::string name, std::vector<std::string> namespaces);
  Status Define();
  Status Put(const PlainQuota& quota);
  Status Remove(const PlainQuota& quota);
  void Change();
  void UpdateChecker();
  quota::Ledger LedgerOf(const Pods& pods) const;

  World& world_;
  kube::Client client_;
  Random random_;
  const bool any_;
  std::vector<PlainQuota> quotas_;
};

}  // namespace nos::sim
