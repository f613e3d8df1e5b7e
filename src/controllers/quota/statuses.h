// Keeps the status of quotas up to date: used, guaranteed, borrowed, lent, and the condition
// InForce, which says what is not in force or cannot be read (quota_status.h).
//
//   QuotaStatuses statuses(accounts, config, events, metrics);
//   statuses.Invalidate();                       // usage has changed
//   statuses.FindUnreadable(view, now);
//   statuses.Find(view, now);                    // queues the quotas whose status differs
//   NOS_RETURN_IF_ERROR(statuses.Write(client, now));
//
// Statuses are computed at most every config.status_pause. Each pod that starts changes the idle
// amounts of all quotas, so quotas for which only those change are updated in turn. An Event is
// published when a quota begins or stops to borrow or lend. Owned by one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controllers/operator.h"
#include "controllers/pending/event_queue.h"
#include "controllers/quota/accounts.h"
#include "controllers/quota/patch_queue.h"

namespace nos::controllers {

class QuotaStatuses {
 public:
  // All must outlive this; `metrics` may be null.
  QuotaStatuses(QuotaAccounts& accounts, const OperatorConfig& config, EventQueue& events,
                Metrics* metrics)
      : accounts_(accounts),
        config_(config),
        events_(events),
        metrics_(metrics),
        due_("status", metrics) {}

  // Forgets what was written and reported.
  void Restart();
  // Statuses may have changed.
  void Invalidate() { outdated_ = true; }
  // Trusts the caches instead of earlier writes: all quotas, or one.
  void ForgetWritten() { written_.clear(); }
  void ForgetWritten(const std::string& quota) { written_.erase(quota); }
  // The quotas in force have changed.
  void OnQuotaChange();

  // Takes the quotas that the caches cannot read, and queues their statuses.
  void FindUnreadable(const reconcile::Listers& view, Time now);
  void Find(const reconcile::Listers& view, Time now);
  // Error: of the last status that could not be written; it is written again after a back-off.
  Status Write(kube::Client& client, Time now);
  // Time::max(): nothing is due.
  Time NextDue() const;

 private:
  struct Patch {
    std::string name;
    quota::SharedQuota quota;
    cluster::QuotaStatus before, after;
    kube::NamedPatch patch;
  };
  struct Unreadable {
    quota::SharedQuota quota;  // identifies it
    std::string why;
  };
  struct Reported {
    bool borrows = false, lends = false;
  };

  cluster::QuotaStatus KnownStatus(const cluster::ElasticQuota& quota) const;
  cluster::QuotaStatus WantedStatus(const std::string& name, size_t account,
                                    const cluster::QuotaStatus& known, Time now);
  Patch PatchOf(const std::string& name, Time now);
  std::vector<Patch> TakePatches(Time now);
  void ReportStatus(const Patch& written);
  void ReportDropped(const Patch& written, const Json& answer);

  QuotaAccounts& accounts_;
  const OperatorConfig& config_;
  EventQueue& events_;
  Metrics* const metrics_;
  PatchQueue due_;  // names of quotas
  bool outdated_ = true;
  Time next_{};             // of the computation of statuses
  std::string last_share_;  // the last quota whose idle amounts were updated
  // Quotas that the caches cannot read, by name, and why.
  std::map<std::string, Unreadable> unreadable_;
  // Written statuses that are newer than the caches, by name.
  std::map<std::string, cluster::QuotaStatus> written_;
  // The state that Events have reported, by name: a status may not keep it.
  std::map<std::string, Reported> reported_;
  bool reported_dropped_ = false;  // it was logged that the CRDs drop written fields
};

}  // namespace nos::controllers
