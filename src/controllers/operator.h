// The operator: publishes the usage of quotas.
//
// It counts the usage of pods that have a node, as the scheduler does (quota/ledger.h), and writes
//   - the status of each quota: used, guaranteed, borrowed, lent, pods over quota, and the
//     condition InForce, which says what is not in force or cannot be read, and why;
//   - the label nos.nebuly.com/capacity (in-quota or over-quota, see quota/standing.h) on each pod
//     that counts in a quota. It is removed where no quota is in force. Finished pods keep theirs;
//   - the namespaces of CompositeElasticQuotas into a ConfigMap, for an admission policy;
//   - Events on a quota when it begins or stops to borrow or lend, and when one of its pods was
//     evicted for another quota's guarantee.
//
// All replicas count, only the leader writes. Only changes are written. Failed writes are retried
// one by one with growing back-off. Owned by one thread, except for QuotaAdmission.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "quota/charge.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

class QuotaAdmission;

struct OperatorConfig {
  quota::ChargeRules charges;
  // Behaviour of the Go version of nos: an ElasticQuota in a namespace of a CompositeElasticQuota
  // is deleted.
  bool delete_overlapping = false;
  // The ConfigMap that lists the namespaces of CompositeElasticQuotas (data.namespaces). Empty
  // name: none.
  std::string namespaces_map_ns, namespaces_map;
  size_t writes_per_call = 50;  // of each kind, per Reconcile
  // Minimum time between two computations of statuses.
  Duration status_pause = std::chrono::seconds(1);
  // Each pod that starts changes the idle amounts of all quotas. This many quotas whose own usage
  // did not change are updated per computation, in turn.
  size_t shares_per_look = 5;
};

// The kinds it watches besides pods and nodes (RunnerOptions::context_kinds).
std::vector<std::string_view> OperatorKinds();

class Operator final : public reconcile::Reconciler {
 public:
  // `admission` is notified of all quotas. It and `metrics` may be null, and must outlive this
  // object.
  explicit Operator(OperatorConfig config, QuotaAdmission* admission = nullptr,
                    Metrics* metrics = nullptr);
  ~Operator() override;

  // Sets whether it writes, from the next Reconcile on; initially false. Returns whether that
  // changed.
  bool Lead(bool leads);
  // Key: kClusterKey. Needs Listers::changes, and OperatorKinds context.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  struct Parts;

  void ApplyChanges(const reconcile::Listers& view);
  void ApplyNode(const reconcile::Listers& view, const reconcile::Change<cluster::Node>& change);
  void ApplyPod(const reconcile::Listers& view, const Pod& before, const Pod& after);
  void PutInForce();
  void ReportReclaim(const Pod& before, const Pod& after);
  Status DeleteOverlapping(kube::Client& client);

  const OperatorConfig config_;
  QuotaAdmission* const admission_;
  Metrics* const metrics_;
  const std::unique_ptr<Parts> parts_;
  bool leads_ = false;
  bool overlaps_ = true;  // overlapping quotas may have to be deleted
};

}  // namespace nos::controllers
