#include "controllers/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "controllers/measures.h"
#include "controllers/quota_admission.h"
#include "controllers/quota_status.h"
#include "quota/standing.h"

namespace nos::controllers {
namespace {

using cluster::ElasticQuota;
using cluster::QuotaStatus;

const kube::Resource kQuotas{"nos.nebuly.com", "v1alpha1", "elasticquotas", "ElasticQuota"};
const kube::Resource kCompositeQuotas{"nos.nebuly.com", "v1alpha1", "compositeelasticquotas",
                                      "CompositeElasticQuota"};

const kube::Resource& ResourceOf(const ElasticQuota& quota) {
  return quota.composite ? kCompositeQuotas : kQuotas;
}

std::string NameOf(const ElasticQuota& quota) {
  return fmt::format("{}/{}", ResourceOf(quota).plural, quota.Key());
}

bool HasNode(const cluster::Pod& pod) { return !pod.node_name.empty() && !pod.Finished(); }

kube::NamedPatch LabelPatch(const cluster::Pod& pod, const std::string& label) {
  Json value = label.empty() ? Json() : Json(label);
  JsonObject labels{{quota::kCapacityLabel, std::move(value)}};
  return {pod.meta.ns,
          pod.meta.name,
          {{"metadata", {{"uid", pod.meta.uid}, {"labels", std::move(labels)}}}}};
}

// Why a scheduler had the pod go for the sake of a quota; null: it did not.
const std::string* ReclaimOf(const cluster::Pod& pod) {
  const cluster::Condition* found = pod.FindCondition("DisruptionTarget");
  const bool is = found != nullptr && found->status == "True" &&
                  found->reason == "PreemptionByScheduler" &&
                  found->message.find("elastic quota") != std::string::npos;
  return is ? &found->message : nullptr;
}

// The object is not there any more, or it is another: what the watch shows next counts.
bool IsGone(const Status& written) {
  return written.code() == Code::kNotFound || written.code() == Code::kConflict;
}

}  // namespace

struct Operator::StatusWrite {
  std::string name;
  quota::SharedQuota quota;
  QuotaStatus before, after;
  kube::NamedPatch patch;
};

std::vector<std::string_view> OperatorKinds() {
  return {cluster::kElasticQuota, cluster::kCompositeQuota};
}

Operator::Operator(OperatorConfig config, QuotaAdmission* admission, Metrics* metrics)
    : config_(config), admission_(admission), metrics_(metrics) {}

bool Operator::Lead(bool leads) {
  if (leads == leads_) return false;
  leads_ = leads;
  all_pods_ = statuses_ = overlaps_ = true;
  labels_written_.clear();
  statuses_written_.clear();
  notes_.clear();
  return true;
}

Outcome Operator::Reconcile(const std::string&, const View& view, kube::Client& client,
                            const Clock& clock) {
  TakeIn(view);
  if (!leads_) return Outcome::Done();
  const Time now = clock.Now();
  FindLabels(view, now);
  FindStatuses(now);
  Status error;
  for (const Status& status :
       {WriteLabels(view, client, now), WriteStatuses(client, now), DeleteOverlapping(client)}) {
    if (!status.ok()) error = status;
  }
  TellNotes(client, clock);
  return Rest(std::move(error), clock.Now());
}

void Operator::TakeIn(const View& view) {
  if (view.changes->everything) return TakeInAll(view);
  bool terms_changed = false;
  for (const AroundChange& change : view.changes->around) terms_changed |= TakeInQuota(change);
  if (terms_changed) PutInForce();
  for (const auto& change : view.changes->nodes) TakeInNode(view, change);
  for (const auto& change : view.changes->pods) TakeInPod(view, change.before, change.after);
}

void Operator::TakeInAll(const View& view) {
  ledger_ = quota::Ledger();
  around_ = view.around->Collect();
  labels_written_.clear();
  statuses_written_.clear();
  for (const Pod& pod : *view.pods.Snapshot()) Count(view, pod);
  PutInForce();
}

// Whether what it means has changed.
bool Operator::TakeInQuota(const AroundChange& change) {
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
  all_pods_ = statuses_ = overlaps_ = true;
}

// What whole GPUs count for may have changed.
void Operator::TakeInNode(const View& view, const Change<cluster::Node>& change) {
  const auto memory = [&](const std::shared_ptr<const cluster::Node>& node) {
    return node == nullptr ? config_.charges.gpu_memory_gb : GpuMemoryOf(*node, config_.charges);
  };
  if (memory(change.before) == memory(change.after)) return;
  const std::string& name = (change.after ? change.after : change.before)->meta.name;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (pod->node_name == name && quota::DependsOnNode(*pod)) TakeInPod(view, pod, pod);
  }
}

void Operator::Count(const View& view, const Pod& pod) {
  if (!HasNode(*pod)) return ledger_.RemovePod(pod->Key());
  const auto node = view.nodes.Get(pod->node_name);
  ledger_.SetPod(pod, ChargeOf(*pod, node.get(), config_.charges));
}

void Operator::TakeInPod(const View& view, const Pod& before, const Pod& after) {
  const Pod& pod = after != nullptr ? after : before;
  labels_written_.erase(pod->Key());
  NoteReclaim(before, after);
  const bool counted = ledger_.ChargeOf(pod->Key()) != nullptr;
  after != nullptr ? Count(view, after) : ledger_.RemovePod(pod->Key());
  if (!counted && ledger_.ChargeOf(pod->Key()) == nullptr) return;
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
  const std::string* why = ReclaimOf(*pod);
  if (!leads_ || why == nullptr || (before != nullptr && ReclaimOf(*before) != nullptr)) return;
  const auto account = ledger_.balance().AccountOf(pod->meta.ns);
  if (!account) return;
  Note(*ledger_.balance().terms(*account).quota, kube::EventType::kNormal, "Reclaimed",
       fmt::format("pod {} has to go: {}", pod->Key(), *why));
}

std::optional<std::string> Operator::WantedLabel(const cluster::Pod& pod) {
  if (ledger_.ChargeOf(pod.Key()) == nullptr) return std::nullopt;
  if (!ledger_.balance().AccountOf(pod.meta.ns)) return "";
  return std::string(ledger_.IsOverQuota(pod.Key()) ? quota::kOverQuota : quota::kInQuota);
}

std::string Operator::LabelOf(const cluster::Pod& pod) const {
  const auto written = labels_written_.find(pod.Key());
  if (written != labels_written_.end()) return written->second;
  const auto found = pod.meta.labels.find(quota::kCapacityLabel);
  return found == pod.meta.labels.end() ? "" : found->second;
}

void Operator::FindLabels(const View& view, Time now) {
  const auto look = [&](const Pod& pod) {
    if (pod == nullptr || pods_due_.Failing(pod->Key())) return;
    const auto wanted = WantedLabel(*pod);
    if (wanted && *wanted != LabelOf(*pod)) pods_due_.Add(pod->Key(), now);
  };
  if (all_pods_) {
    for (const Pod& pod : *view.pods.Snapshot()) look(pod);
  } else {
    for (const size_t account : accounts_) {
      for (const Pod& pod : ledger_.StandingOf(account).pods) look(pod);
    }
    for (const std::string& key : strangers_) look(view.pods.Get(key));
  }
  all_pods_ = false;
  accounts_.clear();
  strangers_.clear();
}

// Whether it was written.
bool Operator::Settle(kube::WorkQueue& queue, const std::string& key, const Status& written,
                      Time now) {
  const bool again = !written.ok() && !IsGone(written);
  again ? queue.Retry(key, now) : queue.Forget(key);
  queue.Done(key);
  if (metrics_ != nullptr && (again || written.ok())) {
    metrics_->Count(kQuotaWrites, {{"what", &queue == &pods_due_ ? "label" : "status"},
                                   {"result", again ? "error" : "ok"}});
  }
  if (again) {
    Log(LogLevel::kWarn, "what quotas say cannot be written",
        {{"object", key}, {"error", written.ToString()}});
  }
  return written.ok();
}

Status Operator::WriteLabels(const View& view, kube::Client& client, Time now) {
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

QuotaStatus Operator::KnownStatus(size_t account) const {
  const ElasticQuota& quota = *ledger_.balance().terms(account).quota;
  const auto written = statuses_written_.find(NameOf(quota));
  if (written != statuses_written_.end()) return written->second;
  const auto& table = quota.composite ? around_.composite_quotas : around_.quotas;
  const ElasticQuota* now = table.Find(quota.Key());  // the account's may be older
  return now == nullptr ? QuotaStatus() : now->status;
}

void Operator::FindStatuses(Time now) {
  if (!statuses_ || now < next_statuses_) return;
  statuses_ = false;
  next_statuses_ = now + config_.status_pause;
  for (const auto& [name, account] : account_by_name_) {
    const QuotaStatus known = KnownStatus(account);
    const bool same = StatusPatch(known, StatusOf(ledger_, account, known, now)).is_null();
    if (!same && !quotas_due_.Failing(name)) quotas_due_.Add(name, now);
  }
}

std::vector<Operator::StatusWrite> Operator::TakeStatuses(Time now) {
  std::vector<StatusWrite> writes;
  while (writes.size() < config_.writes_per_call) {
    const std::optional<std::string> name = quotas_due_.Take(now);
    if (!name) break;
    const auto account = account_by_name_.find(*name);
    StatusWrite write{*name, nullptr, {}, {}, {}};
    if (account != account_by_name_.end()) {
      write.quota = ledger_.balance().terms(account->second).quota;
      write.before = KnownStatus(account->second);
      write.after = StatusOf(ledger_, account->second, write.before, now);
      write.patch = {write.quota->meta.ns, write.quota->meta.name,
                     StatusPatch(write.before, write.after)};
    }
    if (write.patch.patch.is_null()) {
      quotas_due_.Forget(*name);
      quotas_due_.Done(*name);
      continue;
    }
    MakeObject(write.patch.patch, "metadata")["uid"] = write.quota->meta.uid;
    writes.push_back(std::move(write));
  }
  return writes;
}

Status Operator::WriteStatuses(kube::Client& client, Time now) {
  Status error;
  const std::vector<StatusWrite> writes = TakeStatuses(now);
  for (const bool composite : {false, true}) {
    std::vector<const StatusWrite*> of_kind;
    std::vector<kube::NamedPatch> patches;
    for (const StatusWrite& write : writes) {
      if (write.quota->composite != composite) continue;
      of_kind.push_back(&write);
      patches.push_back(write.patch);
    }
    const auto answers = client.PatchAll(composite ? kCompositeQuotas : kQuotas,
                                         kube::PatchType::kMerge, patches, "status");
    for (size_t i = 0; i < answers.size(); ++i) {
      const StatusWrite& write = *of_kind[i];
      if (Settle(quotas_due_, write.name, answers[i].status(), now)) {
        statuses_written_[write.name] = write.after;
        NoteStatus(*write.quota, write.before, write.after);
      } else if (!IsGone(answers[i].status())) {
        error = answers[i].status().Within("status of " + write.name);
      }
    }
  }
  return error;
}

void Operator::NoteStatus(const ElasticQuota& quota, const QuotaStatus& before,
                          const QuotaStatus& after) {
  const auto note = [&](const cluster::ResourceList& was, const cluster::ResourceList& is,
                        const std::string& reason, const std::string& begun,
                        const std::string& ended) {
    if (was.empty() == is.empty()) return;
    Note(quota, kube::EventType::kNormal, is.empty() ? reason + "Ended" : reason,
         is.empty() ? ended : fmt::format("{} {}", begun, TextOf(is)));
  };
  note(before.borrowed, after.borrowed, "Borrowing", "beyond its min it uses",
       "it uses no more than its min covers");
  note(before.lent, after.lent, "Lending", "of its min others use",
       "nothing of its min is used by others");
}

Status Operator::DeleteOverlapping(kube::Client& client) {
  if (!config_.delete_overlapping || !std::exchange(overlaps_, false)) return Status::Ok();
  Status error;
  size_t deleted = 0;
  for (const auto& [key, quota] : around_.quotas.rows()) {
    const auto account = ledger_.balance().AccountOf(quota->meta.ns);
    if (!account || !ledger_.balance().terms(*account).quota->composite) continue;
    overlaps_ = true;  // until the watch shows that it is gone
    if (++deleted > config_.writes_per_call) break;
    const Status status = client.Delete(kQuotas, quota->meta.ns, quota->meta.name,
                                        {{"preconditions", {{"uid", quota->meta.uid}}}});
    if (status.ok()) {
      Note(*ledger_.balance().terms(*account).quota, kube::EventType::kWarning, "OverlapDeleted",
           fmt::format("ElasticQuota {} is deleted: this quota covers its namespace", key));
    } else if (!IsGone(status)) {
      error = status.Within("ElasticQuota " + key);
    }
  }
  return error;
}

void Operator::Note(const ElasticQuota& quota, kube::EventType type, std::string reason,
                    std::string message) {
  constexpr size_t kMostNotes = 10'000;
  if (notes_.size() == kMostNotes) notes_.pop_front();
  notes_.push_back({{ResourceOf(quota).kind, quota.meta.ns, quota.meta.name, quota.meta.uid,
                     "nos.nebuly.com/v1alpha1"},
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

Outcome Operator::Rest(Status error, Time now) const {
  Time due = statuses_ ? next_statuses_ : Time::max();
  for (const kube::WorkQueue* queue : {&pods_due_, &quotas_due_}) {
    due = std::min(due, queue->NextDue().value_or(Time::max()));
  }
  if (!notes_.empty()) due = std::min(due, telling_.next());
  Outcome outcome{std::move(error), std::nullopt};
  if (due != Time::max()) outcome.again = std::max(due - now, Duration());
  return outcome;
}

}  // namespace nos::controllers
