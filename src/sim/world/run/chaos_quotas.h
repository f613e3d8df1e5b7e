// Elastic quotas of a fault simulation: drawn from its seed, changed on the way, and what is due to
// whom at the end.
//
//   ChaosQuotas quotas(world, seed);      // in half of all seeds there are none
//   pod.ns = quotas.DrawNamespace();
//   quotas.Add(options.faults_last);      // now, and what changes by then
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

  ChaosQuotas(World& world, uint64_t seed);

  bool any() const { return any_; }
  // For pods that belong to no gang; "default" where there are no quotas.
  std::string DrawNamespace();
  Status Add(Duration changes_last);

  // Whether quotas let these pods in beside those that have a node.
  bool LetsIn(const std::vector<const cluster::Pod*>& together, const Pods& pods) const;
  // Of those that have a node, pods that may all have to give way to this one, for what its quota
  // guarantees; empty: its quota's min does not cover it.
  Pods MayGoFor(const cluster::Pod& pod, const Pods& pods) const;
  // A line for each quota, for people.
  std::vector<std::string> Describe(const Pods& pods) const;

 private:
  PlainQuota Draw(std::string name, std::vector<std::string> namespaces);
  Status Put(const PlainQuota& quota);
  Status Remove(const PlainQuota& quota);
  void Change();
  void Tell();
  quota::Ledger LedgerOf(const Pods& pods) const;

  World& world_;
  kube::Client client_;
  Random random_;
  const bool any_;
  std::vector<PlainQuota> quotas_;
};

}  // namespace nos::sim
