// The operator: publishes the usage of quotas.
//
// It counts the usage of pods that have a node, as the scheduler does (quota/ledger.h), and writes
//   - the status of each quota: used, guaranteed, borrowed, lent, pods over quota, and the
//     condition InForce, which says what is not in force or cannot be read, and why;
//   - the label nos.nebuly.com/capacity (in-quota or over-quota, see quota/standing.h) on each pod
//     that counts in a quota. It is removed where no quota is in force. Finished pods keep theirs;
//   - Events on a quota when it begins or stops to borrow or lend, and when one of its pods was
//     evicted for another quota's guarantee.
//
// All replicas count, only the leader writes. Only changes are written. Failed writes are retried
// one by one with growing back-off. Owned by one thread, except for QuotaAdmission.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "cluster/context.h"
#include "kube/event_recorder.h"
#include "kube/work_queue.h"
#include "quota/charge.h"
#include "quota/ledger.h"
#include "reconcile/pace.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

class QuotaAdmission;

struct OperatorConfig {
  quota::ChargeRules charges;
  // Behaviour of the Go version of nos: an ElasticQuota in a namespace of a CompositeElasticQuota
  // is deleted.
  bool delete_overlapping = false;
  size_t writes_per_call = 50;  // of each kind, per Reconcile
  // Minimum time between two computations of statuses.
  Duration status_pause = std::chrono::seconds(1);
  // Each pod that starts changes the idle amounts of all quotas. This many quotas whose own usage
  // did not change are updated per computation, in turn.
  size_t shares_per_look = 5;
};

// The kinds it watches besides pods and nodes (RunnerOptions::around_kinds).
std::vector<std::string_view> OperatorKinds();

class Operator final : public reconcile::Reconciler {
 public:
  // `admission` is notified of all quotas. It and `metrics` may be null, and must outlive this
  // object.
  explicit Operator(OperatorConfig config, QuotaAdmission* admission = nullptr,
                    Metrics* metrics = nullptr);

  // Sets whether it writes, from the next Reconcile on; initially false. Returns whether that
  // changed.
  bool Lead(bool leads);
  // Key: kClusterKey. Needs View::changes, and OperatorKinds around.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;

  void TakeIn(const reconcile::Listers& view);
  void TakeInAll(const reconcile::Listers& view);
  void TakeInPod(const reconcile::Listers& view, const Pod& before, const Pod& after);
  void TakeInNode(const reconcile::Listers& view, const reconcile::Change<cluster::Node>& change);
  bool TakeInQuota(const reconcile::ContextChange& change);
  void Count(const reconcile::Listers& view, const Pod& pod);
  void PutInForce();
  void NoteReclaim(const Pod& before, const Pod& after);

  // Absent: the label must not be changed.
  std::optional<std::string> WantedLabel(const cluster::Pod& pod);
  std::string LabelOf(const cluster::Pod& pod) const;
  void FindLabels(const reconcile::Listers& view, Time now);
  Status WriteLabels(const reconcile::Listers& view, kube::Client& client, Time now);
  cluster::QuotaStatus KnownStatus(const cluster::ElasticQuota& quota) const;
  cluster::QuotaStatus WantedStatus(const std::string& name, size_t account,
                                    const cluster::QuotaStatus& known, Time now);
  void FindUnreadable(const reconcile::Listers& view, Time now);
  void FindStatuses(const reconcile::Listers& view, Time now);
  struct StatusWrite;
  StatusWrite WriteOf(const std::string& name, Time now);
  std::vector<StatusWrite> TakeStatuses(Time now);
  Status WriteStatuses(kube::Client& client, Time now);
  void NoteStatus(const StatusWrite& write);
  void NoteDropped(const StatusWrite& write, const Json& answer);
  Status DeleteOverlapping(kube::Client& client);
  void Note(const cluster::ElasticQuota& quota, kube::EventType type, std::string reason,
            std::string message);
  void TellNotes(kube::Client& client, const Clock& clock);
  reconcile::ReconcileResult Rest(Status error, Time now) const;
  bool Settle(kube::WorkQueue& queue, const std::string& key, const Status& written, Time now);

  const OperatorConfig config_;
  QuotaAdmission* const admission_;
  Metrics* const metrics_;
  bool leads_ = false;

  cluster::ClusterContext around_;
  quota::Ledger ledger_;
  // Labels, statuses and overlaps that may have to be written again.
  bool all_pods_ = true, statuses_ = true, overlaps_ = true;
  // Accounts whose pods may have changed between in-quota and over-quota.
  std::set<size_t> accounts_;
  std::set<std::string> strangers_;  // keys of pods in namespaces without a quota in force
  Time next_statuses_{};
  kube::WorkQueue pods_due_, quotas_due_;
  std::map<std::string, size_t> account_by_name_;   // by the names in quotas_due_
  std::vector<std::vector<std::string>> problems_;  // by account
  std::string last_share_;  // the last quota whose idle amounts were updated
  // Quotas that the caches cannot read, by name, and why.
  struct Unreadable {
    quota::SharedQuota quota;  // identifies it
    std::string why;
  };
  std::map<std::string, Unreadable> unreadable_;
  // Written values that are newer than the caches, by pod and by quota.
  std::map<std::string, std::string> labels_written_;
  std::map<std::string, cluster::QuotaStatus> statuses_written_;
  // The state that Events have reported, by name: a status may not keep it.
  struct Told {
    bool borrows = false, lends = false;
  };
  std::map<std::string, Told> told_;
  bool dropped_ = false;  // it was logged that the CRDs drop written fields
  kube::EventRecorder events_{"nos-operator"};
  std::deque<kube::EventNote> notes_;
  reconcile::Pace telling_;
};

}  // namespace nos::controllers
