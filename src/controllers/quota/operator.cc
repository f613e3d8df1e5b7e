#include "controllers/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "controllers/quota/metrics.h"
#include "controllers/quota/operator_internal.h"
#include "controllers/quota_admission.h"
#include "controllers/quota_rules.h"
#include "quota/standing.h"
#include "reconcile/condition.h"
#include "reconcile/metrics.h"

namespace nos::controllers {
namespace {

using cluster::ElasticQuota;

bool HasNode(const cluster::Pod& pod) { return !pod.node_name.empty() && !pod.Finished(); }

kube::NamedPatch LabelPatch(const cluster::Pod& pod, const std::string& label) {
  Json value = label.empty() ? Json() : Json(label);
  JsonObject labels{{quota::kCapacityLabel, std::move(value)}};
  return {pod.meta.ns,
          pod.meta.name,
          {{"metadata", {{"uid", pod.meta.uid}, {"labels", std::move(labels)}}}}};
}

}  // namespace

const kube::Resource& QuotaResource(bool composite) {
  static const kube::Resource kQuotas{"nos.nebuly.com", "v1alpha1", "elasticquotas",
                                      "ElasticQuota"};
  static const kube::Resource kCompositeQuotas{"nos.nebuly.com", "v1alpha1",
                                               "compositeelasticquotas", "CompositeElasticQuota"};
  return composite ? kCompositeQuotas : kQuotas;
}

std::string NameOf(const ElasticQuota& quota) {
  return fmt::format("{}/{}", QuotaResource(quota.composite).plural, quota.Key());
}

std::vector<std::string_view> OperatorKinds() {
  return {cluster::kElasticQuota, cluster::kCompositeQuota};
}

Operator::Operator(OperatorConfig config, QuotaAdmission* admission, Metrics* metrics)
    : config_(config), admission_(admission), metrics_(metrics) {}

bool Operator::Lead(bool leads) {
  if (leads == leads_) return false;
  leads_ = leads;
  if (!leads && metrics_ != nullptr) HideQuotas(*metrics_);
  all_pods_ = statuses_ = overlaps_ = true;
  labels_written_.clear();
  statuses_written_.clear();
  told_.clear();
  unreadable_.clear();
  notes_.clear();
  return true;
}

reconcile::ReconcileResult Operator::Reconcile(const std::string&, const reconcile::Listers& view,
                                               kube::Client& client, const Clock& clock) {
  // 1. Take changes in. A replica that does not lead only counts, so that it can take over at once.
  TakeIn(view);
  if (!leads_) return reconcile::ReconcileResult::Done();
  const Time now = clock.Now();

  // 2. Queue what differs from the cluster. Unreadable quotas come before statuses, which report
  //    them.
  FindLabels(view, now);
  FindUnreadable(view, now);
  FindStatuses(view, now);

  // 3. Write. An error of one kind does not delay the others.
  Status error;
  for (const Status& status :
       {WriteLabels(view, client, now), WriteStatuses(client, now), DeleteOverlapping(client)}) {
    if (!status.ok()) error = status;
  }

  // 4. Publish Events last: they report what was written, and are best effort.
  TellNotes(client, clock);
  return Rest(std::move(error), clock.Now());
}

void Operator::TakeIn(const reconcile::Listers& view) {
  if (view.changes->everything) return TakeInAll(view);
  bool terms_changed = false;
  for (const reconcile::ContextChange& change : view.changes->around)
    terms_changed |= TakeInQuota(change);
  if (terms_changed) PutInForce();
  for (const auto& change : view.changes->nodes) TakeInNode(view, change);
  for (const auto& change : view.changes->pods) TakeInPod(view, change.before, change.after);
}

void Operator::TakeInAll(const reconcile::Listers& view) {
  ledger_ = quota::Ledger();
  around_ = view.around->Collect();
  labels_written_.clear();
  statuses_written_.clear();
  for (const Pod& pod : *view.pods.Snapshot()) Count(view, pod);
  PutInForce();
}

// Returns whether the quota's terms have changed.
bool Operator::TakeInQuota(const reconcile::ContextChange& change) {
  const auto of = [](const std::any& value) {
    const auto* found = std::any_cast<quota::SharedQuota>(&value);
    return found == nullptr ? nullptr : *found;
  };
  const quota::SharedQuota before = of(change.before), after = of(change.after);
  if (before == nullptr && after == nullptr) return false;
  change.apply(around_);
  statuses_written_.erase(NameOf(after != nullptr ? *after : *before));
  statuses_ = true;
  return before == nullptr || after == nullptr || !SameTerms(*before, *after);
}

void Operator::PutInForce() {
  std::vector<quota::SharedQuota> quotas = quota::QuotasOf(around_);
  if (admission_ != nullptr) admission_->SetQuotas(quotas);
  ledger_.SetQuotas(std::move(quotas));
  accounts_.clear();
  account_by_name_.clear();
  for (size_t i = 0; i < ledger_.balance().size(); ++i) {
    account_by_name_.emplace(NameOf(*ledger_.balance().terms(i).quota), i);
  }
  problems_ = ProblemsInForce(ledger_.balance());
  std::erase_if(told_, [&](const auto& of) { return !account_by_name_.contains(of.first); });
  all_pods_ = statuses_ = overlaps_ = true;
}

// The charge of whole GPUs may have changed.
void Operator::TakeInNode(const reconcile::Listers& view,
                          const reconcile::Change<cluster::Node>& change) {
  const auto worth = [&](const std::shared_ptr<const cluster::Node>& node) {
    return GpuWorthOf(node.get(), config_.charges);
  };
  if (worth(change.before) == worth(change.after)) return;
  const std::string& name = (change.after ? change.after : change.before)->meta.name;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (pod->node_name == name && quota::DependsOnNode(*pod)) TakeInPod(view, pod, pod);
  }
}

void Operator::Count(const reconcile::Listers& view, const Pod& pod) {
  if (!HasNode(*pod)) return ledger_.RemovePod(pod->Key());
  const auto node = view.nodes.Get(pod->node_name);
  ledger_.SetPod(pod, ChargeOf(*pod, node.get(), config_.charges));
}

void Operator::TakeInPod(const reconcile::Listers& view, const Pod& before, const Pod& after) {
  const Pod& pod = after != nullptr ? after : before;
  labels_written_.erase(pod->Key());
  NoteReclaim(before, after);
  const bool counted = ledger_.ChargeOf(pod->Key()) != nullptr;
  after != nullptr ? Count(view, after) : ledger_.RemovePod(pod->Key());
  const bool waits = after != nullptr && !HasNode(*after);
  if (!counted && !waits && ledger_.ChargeOf(pod->Key()) == nullptr) return;
  const auto account = ledger_.balance().AccountOf(pod->meta.ns);
  if (account) {
    accounts_.insert(*account);
    statuses_ = true;
  } else if (after != nullptr) {
    strangers_.insert(pod->Key());
  }
}

void Operator::NoteReclaim(const Pod& before, const Pod& after) {
  const Pod& pod = after != nullptr ? after : before;
  const std::string* why = reconcile::WhyReclaimed(*pod);
  if (!leads_ || why == nullptr ||
      (before != nullptr && reconcile::WhyReclaimed(*before) != nullptr))
    return;
  const auto account = ledger_.balance().AccountOf(pod->meta.ns);
  if (!account) return;
  Note(*ledger_.balance().terms(*account).quota, kube::EventType::kNormal, "Reclaimed",
       fmt::format("Evicting Pod {}: {}", pod->Key(), *why));
}

std::optional<std::string> Operator::WantedLabel(const cluster::Pod& pod) {
  const bool counts = ledger_.ChargeOf(pod.Key()) != nullptr;
  const bool has_quota = ledger_.balance().AccountOf(pod.meta.ns).has_value();
  if (!has_quota && (counts || pod.Finished())) return "";
  if (!counts) return std::nullopt;
  return std::string(ledger_.IsOverQuota(pod.Key()) ? quota::kOverQuota : quota::kInQuota);
}

std::string Operator::LabelOf(const cluster::Pod& pod) const {
  const auto written = labels_written_.find(pod.Key());
  if (written != labels_written_.end()) return written->second;
  const auto found = pod.meta.labels.find(quota::kCapacityLabel);
  return found == pod.meta.labels.end() ? "" : found->second;
}

void Operator::FindLabels(const reconcile::Listers& view, Time now) {
  const auto look = [&](const Pod& pod) {
    if (pod == nullptr || pods_due_.Failing(pod->Key())) return;
    const auto wanted = WantedLabel(*pod);
    if (wanted && *wanted != LabelOf(*pod)) pods_due_.Add(pod->Key(), now);
  };
  if (all_pods_) {
    for (const Pod& pod : *view.pods.Snapshot()) look(pod);
  } else {
    accounts_.merge(ledger_.TakeChanged());
    for (const size_t account : accounts_) {
      for (const Pod& pod : ledger_.StandingOf(account).pods) look(pod);
    }
    for (const std::string& key : strangers_) look(view.pods.Get(key));
  }
  all_pods_ = false;
  accounts_.clear();
  strangers_.clear();
}

// Returns whether the write succeeded.
bool Operator::Settle(kube::WorkQueue& queue, const std::string& key, const Status& written,
                      Time now) {
  const bool again = !written.ok() && !IsGone(written);
  again ? queue.Retry(key, now) : queue.Forget(key);
  queue.Done(key);
  if (metrics_ != nullptr && (again || written.ok())) {
    metrics_->Count(reconcile::kQuotaWrites, {{"what", &queue == &pods_due_ ? "label" : "status"},
                                              {"result", again ? "error" : "ok"}});
  }
  if (again) {
    Log(LogLevel::kWarn, "failed to patch quota status or Pod label",
        {{"object", key}, {"error", written.ToString()}});
  }
  return written.ok();
}

Status Operator::WriteLabels(const reconcile::Listers& view, kube::Client& client, Time now) {
  std::vector<kube::NamedPatch> patches;
  std::vector<std::pair<std::string, std::string>> labels;  // key, label
  while (patches.size() < config_.writes_per_call) {
    const std::optional<std::string> key = pods_due_.Take(now);
    if (!key) break;
    const Pod pod = view.pods.Get(*key);
    const auto wanted = pod == nullptr ? std::nullopt : WantedLabel(*pod);
    if (!wanted || *wanted == LabelOf(*pod)) {
      pods_due_.Forget(*key);
      pods_due_.Done(*key);
      continue;
    }
    patches.push_back(LabelPatch(*pod, *wanted));
    labels.emplace_back(*key, *wanted);
  }
  Status error;
  const auto answers = client.PatchAll(kube::kPods, kube::PatchType::kMerge, patches);
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto& [key, label] = labels[i];
    if (Settle(pods_due_, key, answers[i].status(), now)) {
      labels_written_[key] = label;
    } else if (!IsGone(answers[i].status())) {
      error = answers[i].status().Within("label of pod " + key);
    }
  }
  return error;
}

Status Operator::DeleteOverlapping(kube::Client& client) {
  if (!config_.delete_overlapping || !std::exchange(overlaps_, false)) return Status::Ok();
  Status error;
  size_t deleted = 0;
  for (const auto& [key, quota] : around_.quotas.rows()) {
    const auto account = ledger_.balance().AccountOf(quota->meta.ns);
    if (!account || !ledger_.balance().terms(*account).quota->composite) continue;
    if (quota->meta.deleted) continue;  // a finalizer of another client keeps it
    overlaps_ = true;                   // until the watch shows the deletion
    if (++deleted > config_.writes_per_call) break;
    const Status status = client.Delete(QuotaResource(false), quota->meta.ns, quota->meta.name,
                                        {{"preconditions", {{"uid", quota->meta.uid}}}});
    if (status.ok()) {
      Note(*ledger_.balance().terms(*account).quota, kube::EventType::kWarning, "OverlapDeleted",
           fmt::format("Deleting ElasticQuota {}: this quota covers its namespace", key));
    } else if (!IsGone(status)) {
      error = status.Within("ElasticQuota " + key);
    }
  }
  return error;
}

void Operator::Note(const ElasticQuota& quota, kube::EventType type, std::string reason,
                    std::string message) {
  constexpr size_t kMaxNotes = 10'000;
  if (notes_.size() == kMaxNotes) notes_.pop_front();
  notes_.push_back({{QuotaResource(quota.composite).kind, quota.meta.ns, quota.meta.name,
                     quota.meta.uid, "nos.nebuly.com/v1alpha1"},
                    type,
                    std::move(reason),
                    std::move(message)});
}

void Operator::TellNotes(kube::Client& client, const Clock& clock) {
  const Time begin = clock.Now();
  if (notes_.empty() || begin < telling_.next()) return;
  const auto end = notes_.begin() +
                   static_cast<std::ptrdiff_t>(std::min(notes_.size(), config_.writes_per_call));
  const std::vector<kube::EventNote> portion(notes_.begin(), end);
  notes_.erase(notes_.begin(), end);
  kube::Client hasty = client.Within(telling_.patience());
  (void)events_.RecordAll(hasty, portion, begin);  // best effort
  const Time now = clock.Now();
  telling_.Took(now - begin, now);
}

reconcile::ReconcileResult Operator::Rest(Status error, Time now) const {
  Time due = statuses_ ? next_statuses_ : Time::max();
  for (const kube::WorkQueue* queue : {&pods_due_, &quotas_due_}) {
    due = std::min(due, queue->NextDue().value_or(Time::max()));
  }
  if (!notes_.empty()) due = std::min(due, telling_.next());
  reconcile::ReconcileResult outcome{std::move(error), std::nullopt};
  if (due != Time::max()) outcome.again = std::max(due - now, Duration());
  return outcome;
}

}  // namespace nos::controllers
