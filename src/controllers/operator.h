// The operator: tells people and schedulers where quotas stand.
//
// It counts what pods that have a node use, as the scheduler does (quota/ledger.h), and writes
//   - into each quota its status: used, guaranteed, borrowed, lent, pods over quota, and in the
//     condition InForce what of it cannot be in force, and why, also of what cannot be read;
//   - onto each pod that counts in a quota the label nos.nebuly.com/capacity, in-quota or
//     over-quota (quota/standing.h); it is taken off again where no quota is in force. Pods that
//     have ended keep theirs;
//   - Events on a quota when it begins to borrow or lend and when it ends, and when a pod of it has
//     had to go for what another's guarantees.
//
// All replicas count, the one that leads writes. Only what has changed is written; what is refused
// is tried again by itself, with growing pauses. One owner thread, but for the admission's.
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
#include "cluster/surroundings.h"
#include "reconcile/pace.h"
#include "reconcile/reconciler.h"
#include "kube/event_recorder.h"
#include "kube/work_queue.h"
#include "quota/charge.h"
#include "quota/ledger.h"

namespace nos::controllers {

class QuotaAdmission;

struct OperatorConfig {
  quota::ChargeRules charges;
  // As the Go system did: an ElasticQuota in a namespace of a composite one is deleted.
  bool delete_overlapping = false;
  size_t writes_per_call = 50;  // of each kind, before the next look
  // Statuses are looked at at most so often.
  Duration status_pause = std::chrono::seconds(1);
  // A pod that starts changes all over what is idle: of those whose own use is what it was, so many
  // are told of it at each look, in turn.
  size_t shares_per_look = 5;
};

// The kinds it watches beside pods and nodes (RunnerOptions::around_kinds).
std::vector<std::string_view> OperatorKinds();

class Operator final : public reconcile::Reconciler {
 public:
  // `admission` hears of all quotas; it and `metrics` may be null, and must outlive this.
  explicit Operator(OperatorConfig config, QuotaAdmission* admission = nullptr,
                    Metrics* metrics = nullptr);

  // Whether it writes, from the next look on; at first it does not. Returns whether that is new.
  bool Lead(bool leads);
  // Key: kClusterKey. Needs View::changes, and OperatorKinds around.
  reconcile::Outcome Reconcile(const std::string& key, const reconcile::View& view, kube::Client& client,
                    const Clock& clock) override;

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;

  void TakeIn(const reconcile::View& view);
  void TakeInAll(const reconcile::View& view);
  void TakeInPod(const reconcile::View& view, const Pod& before, const Pod& after);
  void TakeInNode(const reconcile::View& view, const reconcile::Change<cluster::Node>& change);
  bool TakeInQuota(const reconcile::AroundChange& change);
  void Count(const reconcile::View& view, const Pod& pod);
  void PutInForce();
  void NoteReclaim(const Pod& before, const Pod& after);

  // Absent: it is not for this to say.
  std::optional<std::string> WantedLabel(const cluster::Pod& pod);
  std::string LabelOf(const cluster::Pod& pod) const;
  void FindLabels(const reconcile::View& view, Time now);
  Status WriteLabels(const reconcile::View& view, kube::Client& client, Time now);
  cluster::QuotaStatus KnownStatus(const cluster::ElasticQuota& quota) const;
  cluster::QuotaStatus WantedStatus(const std::string& name, size_t account,
                                    const cluster::QuotaStatus& known, Time now);
  void FindUnreadable(const reconcile::View& view, Time now);
  void FindStatuses(const reconcile::View& view, Time now);
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
  reconcile::Outcome Rest(Status error, Time now) const;
  bool Settle(kube::WorkQueue& queue, const std::string& key, const Status& written, Time now);

  const OperatorConfig config_;
  QuotaAdmission* const admission_;
  Metrics* const metrics_;
  bool leads_ = false;

  cluster::Surroundings around_;
  quota::Ledger ledger_;
  // What may have to be told anew.
  bool all_pods_ = true, statuses_ = true, overlaps_ = true;
  std::set<size_t> accounts_;        // whose pods may stand otherwise
  std::set<std::string> strangers_;  // keys of pods in whose namespace no quota is in force
  Time next_statuses_{};
  kube::WorkQueue pods_due_, quotas_due_;
  std::map<std::string, size_t> account_by_name_;   // as quotas_due_ names them
  std::vector<std::vector<std::string>> problems_;  // by account
  std::string last_share_;                          // the last that was told of what is idle
  // Quotas that the caches cannot read, by name, and why.
  struct Unreadable {
    quota::SharedQuota quota;  // which it is
    std::string why;
  };
  std::map<std::string, Unreadable> unreadable_;
  // Newer than what the caches show, by pod and by quota.
  std::map<std::string, std::string> labels_written_;
  std::map<std::string, cluster::QuotaStatus> statuses_written_;
  // What Events have said, by name: a status may not keep it.
  struct Told {
    bool borrows = false, lends = false;
  };
  std::map<std::string, Told> told_;
  bool dropped_ = false;  // it is logged that definitions drop what is written
  kube::EventRecorder events_{"nos-operator"};
  std::deque<kube::EventNote> notes_;
  reconcile::Pace telling_;
};

}  // namespace nos::controllers
