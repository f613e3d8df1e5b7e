#include "controllers/operator.h"

#include <algorithm>
#include <utility>

#include "controllers/events.h"
#include "controllers/pending/event_queue.h"
#include "controllers/quota/accounts.h"
#include "controllers/quota/covered_namespaces.h"
#include "controllers/quota/gauges.h"
#include "controllers/quota/pod_labels.h"
#include "controllers/quota/statuses.h"
#include "controllers/quota_admission.h"
#include "dra/context.h"
#include "reconcile/condition.h"

namespace nos::controllers {

std::vector<std::string_view> OperatorKinds() {
  return {cluster::kElasticQuota, cluster::kCompositeQuota, dra::kClaimKind};
}

// The collaborators.
struct Operator::Parts {
  Parts(const OperatorConfig& config, Metrics* metrics)
      : accounts(config.charges),
        events("nos-operator", config.writes_per_call),
        labels(accounts, config.writes_per_call, metrics),
        statuses(accounts, config, events, metrics),
        covered(config.namespaces_map_ns, config.namespaces_map, metrics) {}

  QuotaAccounts accounts;
  EventQueue events;
  PodLabels labels;
  QuotaStatuses statuses;
  CoveredNamespaces covered;
};

Operator::Operator(OperatorConfig config, QuotaAdmission* admission, Metrics* metrics)
    : config_(std::move(config)),
      admission_(admission),
      metrics_(metrics),
      parts_(std::make_unique<Parts>(config_, metrics)) {}

Operator::~Operator() = default;

bool Operator::Lead(bool leads) {
  if (leads == leads_) return false;
  leads_ = leads;
  if (!leads && metrics_ != nullptr) HideQuotas(*metrics_);
  overlaps_ = true;
  parts_->labels.Restart();
  parts_->statuses.Restart();
  parts_->covered.Restart();
  parts_->events.Clear();
  return true;
}

reconcile::ReconcileResult Operator::Reconcile(const std::string&, const reconcile::Listers& view,
                                               kube::Client& client, const Clock& clock) {
  // 1. Apply changes. A replica that does not lead only counts, so that it can take over at once.
  ApplyChanges(view);
  if (!leads_) return reconcile::ReconcileResult::Done();
  const Time now = clock.Now();

  // 2. Queue what differs from the cluster. Unreadable quotas come before statuses, which report
  //    them.
  parts_->labels.Find(view, now);
  parts_->statuses.FindUnreadable(view, now);
  parts_->statuses.Find(view, now);
  parts_->covered.Find(parts_->accounts.context(), now);

  // 3. Write. An error of one kind does not delay the others.
  Status error;
  for (const Status& status :
       {parts_->labels.Write(view, client, now), parts_->statuses.Write(client, now),
        parts_->covered.Write(client, now), DeleteOverlapping(client)}) {
    if (!status.ok()) error = status;
  }

  // 4. Publish Events last: they report what was written, and are best effort.
  if (parts_->events.Due() <= clock.Now()) parts_->events.Publish(view, client, clock);

  // 5. Rest until something is due.
  const Time due = std::min({parts_->labels.NextDue(), parts_->statuses.NextDue(),
                             parts_->covered.NextDue(), parts_->events.Due()});
  reconcile::ReconcileResult outcome{std::move(error), std::nullopt};
  if (due != Time::max()) outcome.again = std::max(due - clock.Now(), Duration());
  return outcome;
}

void Operator::ApplyChanges(const reconcile::Listers& view) {
  if (view.changes->everything) {
    parts_->labels.Restart();
    parts_->statuses.ForgetWritten();
    parts_->accounts.Rebuild(view);
    return PutInForce();
  }
  bool terms_changed = false;
  for (const reconcile::ContextChange& change : view.changes->context) {
    const QuotaChange quota = parts_->accounts.Apply(change);
    if (quota.name.empty()) continue;
    parts_->statuses.ForgetWritten(quota.name);
    parts_->statuses.Invalidate();
    terms_changed |= quota.terms_changed;
  }
  if (terms_changed) PutInForce();
  for (const auto& change : view.changes->nodes) ApplyNode(view, change);
  for (const auto& change : view.changes->pods) ApplyPod(view, change.before, change.after);
  for (const reconcile::ContextChange& change : view.changes->context) {
    for (const Pod& pod : parts_->accounts.UsersOf(change)) ApplyPod(view, pod, pod);
  }
}

void Operator::PutInForce() {
  if (admission_ != nullptr) admission_->SetQuotas(quota::QuotasOf(parts_->accounts.context()));
  parts_->accounts.PutInForce();
  parts_->labels.OnQuotaChange();
  parts_->statuses.OnQuotaChange();
  parts_->covered.OnQuotaChange();
  overlaps_ = true;
}

// The charge of whole GPUs may have changed.
void Operator::ApplyNode(const reconcile::Listers& view,
                         const reconcile::Change<cluster::Node>& change) {
  if (!parts_->accounts.ChangesCharges(change)) return;
  const std::string& name = (change.after ? change.after : change.before)->meta.name;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (pod->node_name == name && quota::DependsOnNode(*pod)) ApplyPod(view, pod, pod);
  }
}

void Operator::ApplyPod(const reconcile::Listers& view, const Pod& before, const Pod& after) {
  QuotaAccounts& accounts = parts_->accounts;
  const Pod& pod = after != nullptr ? after : before;
  const std::string key = pod->Key();
  parts_->labels.OnPodUpdate(key);
  ReportReclaim(before, after);
  const bool counted = accounts.ledger().ChargeOf(key) != nullptr;
  after != nullptr ? accounts.Count(view, after) : accounts.Remove(key);
  const bool waits = after != nullptr && !HasNode(*after);
  if (!counted && !waits && accounts.ledger().ChargeOf(key) == nullptr) return;
  const auto account = accounts.balance().AccountOf(pod->meta.ns);
  if (account) {
    parts_->labels.CheckAccount(*account);
    parts_->statuses.Invalidate();
  } else if (after != nullptr) {
    parts_->labels.CheckPod(key);
  }
}

void Operator::ReportReclaim(const Pod& before, const Pod& after) {
  const Pod& pod = after != nullptr ? after : before;
  const std::string* why = reconcile::WhyReclaimed(*pod);
  if (!leads_ || why == nullptr) return;
  if (before != nullptr && reconcile::WhyReclaimed(*before) != nullptr) return;
  const auto account = parts_->accounts.balance().AccountOf(pod->meta.ns);
  if (!account) return;
  parts_->events.Add(events::Reclaimed(parts_->accounts.QuotaOf(*account), pod->Key(), *why));
}

Status Operator::DeleteOverlapping(kube::Client& client) {
  if (!config_.delete_overlapping || !std::exchange(overlaps_, false)) return Status::Ok();
  Status error;
  size_t deleted = 0;
  const QuotaAccounts& accounts = parts_->accounts;
  for (const auto& [key, quota] : accounts.context().quotas.rows()) {
    const auto account = accounts.balance().AccountOf(quota->meta.ns);
    if (!account || !accounts.QuotaOf(*account).composite) continue;
    if (quota->meta.deleted) continue;  // a finalizer of another client keeps it
    overlaps_ = true;                   // until the watch shows the deletion
    if (++deleted > config_.writes_per_call) break;
    const Status status = client.Delete(QuotaResource(false), quota->meta.ns, quota->meta.name,
                                        {{"preconditions", {{"uid", quota->meta.uid}}}});
    if (status.ok()) {
      parts_->events.Add(events::OverlapDeleted(accounts.QuotaOf(*account), key));
    } else if (!IsGone(status)) {
      error = status.Within("ElasticQuota " + key);
    }
  }
  return error;
}

}  // namespace nos::controllers
