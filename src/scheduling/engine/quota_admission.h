// Decides which pods quotas admit, with nominated and evicted pods taken into account.
//
//   QuotaAdmission admission(cache, charges, evicted, nominator);
//   if (auto refusal = admission.WhyNot(framework, pod, nullptr)) return *refusal;
//
//   QuotaGate gate(admission, framework, pod);   // for one pod and many nodes
//   if (const quota::Refusal* refusal = gate.On(node)) ...
//
// No state of its own. The constructor's arguments must outlive it. Owned by one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "scheduling/engine/cluster_cache.h"
#include "scheduling/engine/evicted_pods.h"
#include "scheduling/engine/nominator.h"
#include "scheduling/engine/quota_charges.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

class Framework;

class QuotaAdmission {
 public:
  QuotaAdmission(const ClusterCache& cache, const QuotaCharges& charges, const EvictedPods& evicted,
                 const Nominator& nominator)
      : cache_(cache), charges_(charges), evicted_(evicted), nominator_(nominator) {}

  // See Engine::BalanceFor, BalanceToReclaim and WhyNotByQuota.
  quota::Balance BalanceFor(const cluster::Pod& pod, const std::set<std::string>& left_out,
                            std::string_view on) const;
  quota::Balance BalanceToReclaim(const cluster::Pod& pod, std::set<std::string> left_out,
                                  FunctionRef<bool(const std::string&)> sees_to_it,
                                  std::string_view on) const;
  std::optional<quota::Refusal> WhyNot(const Framework& framework, const cluster::Pod& pod,
                                       const cluster::NodeInfo* node) const;
  const QuotaCharges& charges() const { return charges_; }

 private:
  const ClusterCache& cache_;
  const QuotaCharges& charges_;
  const EvictedPods& evicted_;
  const Nominator& nominator_;
};

// The refusals of one pod, each computed once: for all nodes, or once per GPU memory size if the
// pod's charge differs between nodes. Valid until the engine changes.
class QuotaGate {
 public:
  // The arguments must outlive it.
  QuotaGate(const QuotaAdmission& admission, const Framework& framework, const cluster::Pod& pod);

  // The refusal on every node. Null: some node may admit the pod.
  const quota::Refusal* Everywhere() const { return everywhere_ ? &*everywhere_ : nullptr; }
  // Null: admitted.
  const quota::Refusal* On(const cluster::NodeInfo& node);

 private:
  const QuotaAdmission& admission_;
  const Framework& framework_;
  const cluster::Pod& pod_;
  bool by_node_ = false;
  std::optional<quota::Refusal> everywhere_;
  std::map<quota::GpuWorth, std::optional<quota::Refusal>> by_worth_;
};

}  // namespace nos::scheduling
