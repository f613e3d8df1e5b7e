// Decides when the operator writes the status of quotas, and writes it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "controllers/quota/metrics.h"
#include "controllers/quota/operator_internal.h"
#include "controllers/quota_status.h"

namespace nos::controllers {

using cluster::ElasticQuota;
using cluster::QuotaStatus;

struct Operator::StatusWrite {
  std::string name;
  quota::SharedQuota quota;
  QuotaStatus before, after;
  kube::NamedPatch patch;
};

QuotaStatus Operator::KnownStatus(const ElasticQuota& quota) const {
  const auto written = statuses_written_.find(NameOf(quota));
  if (written != statuses_written_.end()) return written->second;
  const auto& table = quota.composite ? around_.composite_quotas : around_.quotas;
  const ElasticQuota* now = table.Find(quota.Key());  // the account's may be older
  return now == nullptr ? QuotaStatus() : now->status;
}

QuotaStatus Operator::WantedStatus(const std::string& name, size_t account,
                                   const QuotaStatus& known, Time now) {
  std::vector<std::string> problems = problems_[account];
  if (const auto unreadable = unreadable_.find(name); unreadable != unreadable_.end()) {
    problems.insert(problems.begin(),
                    "its last change cannot be read and does not count: " + unreadable->second.why);
  }
  return StatusOf(ledger_, account, problems, known, now);
}

// The caches keep the last readable version of a quota, or none.
void Operator::FindUnreadable(const reconcile::Listers& view, Time now) {
  std::map<std::string, Unreadable> found;
  for (const bool composite : {false, true}) {
    for (const auto& [key, why] : view.around->Problems(QuotaResource(composite).kind)) {
      const auto quota = std::make_shared<ElasticQuota>();
      quota->composite = composite;
      quota->meta.ns = key.substr(0, key.find('/'));
      quota->meta.name = key.substr(key.find('/') + 1);
      const std::string name = NameOf(*quota);
      found[name] = {quota, why};
      const auto known = unreadable_.find(name);
      if (known != unreadable_.end() && known->second.why == why) continue;
      Note(*quota, kube::EventType::kWarning, "Unreadable", "Ignoring invalid quota: " + why);
      quotas_due_.Add(name, now);
    }
  }
  unreadable_ = std::move(found);
}

void Operator::FindStatuses(const reconcile::Listers& view, Time now) {
  if (!statuses_ || now < next_statuses_) return;
  next_statuses_ = now + config_.status_pause;
  if (metrics_ != nullptr) {
    ShowQuotas(ledger_.balance(), *view.pods.Snapshot(), config_.charges, *metrics_);
  }
  std::vector<std::string> shares;
  for (const auto& [name, account] : account_by_name_) {
    const QuotaStatus known = KnownStatus(*ledger_.balance().terms(account).quota);
    const Json patch = StatusPatch(known, WantedStatus(name, account, known, now));
    if (patch.is_null() || quotas_due_.Failing(name)) continue;
    if (TellsSharesOnly(patch)) {
      shares.push_back(name);
    } else {
      quotas_due_.Add(name, now);
    }
  }
  std::ranges::rotate(shares, std::ranges::upper_bound(shares, last_share_));
  statuses_ = shares.size() > config_.shares_per_look;
  if (statuses_) shares.resize(config_.shares_per_look);
  for (const std::string& name : shares) quotas_due_.Add(name, now);
  if (!shares.empty()) last_share_ = shares.back();
}

Operator::StatusWrite Operator::WriteOf(const std::string& name, Time now) {
  StatusWrite write{name, nullptr, {}, {}, {}};
  const auto account = account_by_name_.find(name);
  const auto unreadable = unreadable_.find(name);
  if (account != account_by_name_.end()) {
    write.quota = ledger_.balance().terms(account->second).quota;
    write.before = KnownStatus(*write.quota);
    write.after = WantedStatus(name, account->second, write.before, now);
  } else if (unreadable != unreadable_.end()) {
    write.quota = unreadable->second.quota;
    write.before = KnownStatus(*write.quota);
    write.after = UnreadableStatus(unreadable->second.why, write.before, now);
  } else {
    return write;
  }
  Json patch = StatusPatch(write.before, write.after);
  if (!patch.is_null() && !write.quota->meta.uid.empty()) {
    MakeObject(patch, "metadata")["uid"] = write.quota->meta.uid;
  }
  write.patch = {write.quota->meta.ns, write.quota->meta.name, std::move(patch)};
  return write;
}

std::vector<Operator::StatusWrite> Operator::TakeStatuses(Time now) {
  std::vector<StatusWrite> writes;
  while (writes.size() < config_.writes_per_call) {
    const std::optional<std::string> name = quotas_due_.Take(now);
    if (!name) break;
    StatusWrite write = WriteOf(*name, now);
    if (!write.patch.patch.is_null()) {
      writes.push_back(std::move(write));
      continue;
    }
    quotas_due_.Forget(*name);
    quotas_due_.Done(*name);
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
    const auto answers =
        client.PatchAll(QuotaResource(composite), kube::PatchType::kMerge, patches, "status");
    for (size_t i = 0; i < answers.size(); ++i) {
      const StatusWrite& write = *of_kind[i];
      if (Settle(quotas_due_, write.name, answers[i].status(), now)) {
        statuses_written_[write.name] = write.after;
        NoteStatus(write);
        NoteDropped(write, *answers[i]);
      } else if (!IsGone(answers[i].status())) {
        error = answers[i].status().Within("status of " + write.name);
      }
    }
  }
  return error;
}

void Operator::NoteStatus(const StatusWrite& write) {
  const auto note = [&](bool& was, const cluster::ResourceList& is, const std::string& reason,
                        const std::string& begun, const std::string& ended) {
    if (was == !is.empty()) return;
    was = !is.empty();
    Note(*write.quota, kube::EventType::kNormal, was ? reason : reason + "Ended",
         was ? fmt::format("{} {}", begun, TextOf(is)) : ended);
  };
  const Told known{!write.before.borrowed.empty(), !write.before.lent.empty()};
  Told& told = told_.try_emplace(write.name, known).first->second;
  note(told.borrows, write.after.borrowed, "Borrowing",
       "Using beyond min:", "Using no more than min");
  note(told.lends, write.after.lent, "Lending",
       "Lending to other quotas:", "Lending nothing to other quotas");
}

// CRDs of the Go version of nos have no status fields except `used`.
void Operator::NoteDropped(const StatusWrite& write, const Json& answer) {
  const Json* status = Find(answer, "status");
  if (dropped_ || status == nullptr || write.after.conditions.empty()) return;
  if (Find(*status, "conditions") != nullptr) return;
  dropped_ = true;
  Log(LogLevel::kWarn,
      "CRDs of quotas are outdated and drop most status fields: "
      "install the CRDs of this version (kubectl apply --server-side --force-conflicts)",
      {{"object", write.name}});
}

}  // namespace nos::controllers
