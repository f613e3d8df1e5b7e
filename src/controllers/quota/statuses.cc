#include "controllers/quota/statuses.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "controllers/events.h"
#include "controllers/quota/gauges.h"
#include "controllers/quota_status.h"

namespace nos::controllers {

using cluster::ElasticQuota;
using cluster::QuotaStatus;

void QuotaStatuses::Restart() {
  outdated_ = true;
  written_.clear();
  reported_.clear();
  unreadable_.clear();
}

void QuotaStatuses::OnQuotaChange() {
  outdated_ = true;
  std::erase_if(reported_, [&](const auto& item) { return !accounts_.Find(item.first); });
}

QuotaStatus QuotaStatuses::KnownStatus(const ElasticQuota& quota) const {
  const auto written = written_.find(NameOf(quota));
  if (written != written_.end()) return written->second;
  const cluster::ClusterContext& context = accounts_.context();
  const auto& table = quota.composite ? context.composite_quotas : context.quotas;
  const ElasticQuota* now = table.Find(quota.Key());  // the account's may be older
  return now == nullptr ? QuotaStatus() : now->status;
}

QuotaStatus QuotaStatuses::WantedStatus(const std::string& name, size_t account,
                                        const QuotaStatus& known, Time now) {
  std::vector<std::string> problems = accounts_.ProblemsOf(account);
  if (const auto unreadable = unreadable_.find(name); unreadable != unreadable_.end()) {
    problems.insert(problems.begin(),
                    "its last change cannot be read and does not count: " + unreadable->second.why);
  }
  return StatusOf(accounts_.ledger(), account, problems, known, now);
}

// The caches keep the last readable version of a quota, or none.
void QuotaStatuses::FindUnreadable(const reconcile::Listers& view, Time now) {
  std::map<std::string, Unreadable> found;
  for (const bool composite : {false, true}) {
    for (const auto& [key, why] : view.context->Problems(QuotaResource(composite).kind)) {
      const auto quota = std::make_shared<ElasticQuota>();
      quota->composite = composite;
      quota->meta.ns = key.substr(0, key.find('/'));
      quota->meta.name = key.substr(key.find('/') + 1);
      const std::string name = NameOf(*quota);
      found[name] = {quota, why};
      const auto known = unreadable_.find(name);
      if (known != unreadable_.end() && known->second.why == why) continue;
      events_.Add(events::Unreadable(*quota, why));
      due_.Add(name, now);
    }
  }
  unreadable_ = std::move(found);
}

void QuotaStatuses::Find(const reconcile::Listers& view, Time now) {
  if (!outdated_ || now < next_) return;
  next_ = now + config_.status_pause;
  if (metrics_ != nullptr) {
    ShowQuotas(accounts_.ledger(), *view.pods.Snapshot(), accounts_.charges(), *metrics_);
  }
  std::vector<std::string> shares;
  for (const auto& [name, account] : accounts_.by_name()) {
    const QuotaStatus known = KnownStatus(accounts_.QuotaOf(account));
    const Json patch = StatusPatch(known, WantedStatus(name, account, known, now));
    if (patch.is_null() || due_.Failing(name)) continue;
    if (ChangesSharesOnly(patch)) {
      shares.push_back(name);
    } else {
      due_.Add(name, now);
    }
  }
  std::ranges::rotate(shares, std::ranges::upper_bound(shares, last_share_));
  outdated_ = shares.size() > config_.shares_per_look;
  if (outdated_) shares.resize(config_.shares_per_look);
  for (const std::string& name : shares) due_.Add(name, now);
  if (!shares.empty()) last_share_ = shares.back();
}

QuotaStatuses::Patch QuotaStatuses::PatchOf(const std::string& name, Time now) {
  Patch write{name, nullptr, {}, {}, {}};
  const auto account = accounts_.Find(name);
  const auto unreadable = unreadable_.find(name);
  if (account) {
    write.quota = accounts_.balance().terms(*account).quota;
    write.before = KnownStatus(*write.quota);
    write.after = WantedStatus(name, *account, write.before, now);
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

std::vector<QuotaStatuses::Patch> QuotaStatuses::TakePatches(Time now) {
  std::vector<Patch> writes;
  while (writes.size() < config_.writes_per_call) {
    const std::optional<std::string> name = due_.Take(now);
    if (!name) break;
    Patch write = PatchOf(*name, now);
    if (write.patch.patch.is_null()) {
      due_.Drop(*name);
    } else {
      writes.push_back(std::move(write));
    }
  }
  return writes;
}

Status QuotaStatuses::Write(kube::Client& client, Time now) {
  Status error;
  const std::vector<Patch> writes = TakePatches(now);
  for (const bool composite : {false, true}) {
    std::vector<const Patch*> of_kind;
    std::vector<kube::NamedPatch> patches;
    for (const Patch& write : writes) {
      if (write.quota->composite != composite) continue;
      of_kind.push_back(&write);
      patches.push_back(write.patch);
    }
    const auto answers =
        client.PatchAll(QuotaResource(composite), kube::PatchType::kMerge, patches, "status");
    for (size_t i = 0; i < answers.size(); ++i) {
      const Patch& write = *of_kind[i];
      if (due_.Settle(write.name, answers[i].status(), now)) {
        written_[write.name] = write.after;
        ReportStatus(write);
        ReportDropped(write, *answers[i]);
      } else if (!IsGone(answers[i].status())) {
        error = answers[i].status().Within("status of " + write.name);
      }
    }
  }
  return error;
}

Time QuotaStatuses::NextDue() const {
  return std::min(outdated_ ? next_ : Time::max(), due_.NextDue());
}

void QuotaStatuses::ReportStatus(const Patch& written) {
  const cluster::ElasticQuota& quota = *written.quota;
  const auto report = [&](bool& was, const cluster::ResourceList& is, auto begun, auto ended) {
    if (was == !is.empty()) return;
    was = !is.empty();
    events_.Add(was ? begun(quota, TextOf(is)) : ended(quota));
  };
  const Reported known{!written.before.borrowed.empty(), !written.before.lent.empty()};
  Reported& reported = reported_.try_emplace(written.name, known).first->second;
  report(reported.borrows, written.after.borrowed, events::Borrowing, events::BorrowingEnded);
  report(reported.lends, written.after.lent, events::Lending, events::LendingEnded);
}

// CRDs of the Go version of nos have no status fields except `used`.
void QuotaStatuses::ReportDropped(const Patch& written, const Json& answer) {
  const Json* status = nos::Find(answer, "status");
  if (reported_dropped_ || status == nullptr || written.after.conditions.empty()) return;
  if (nos::Find(*status, "conditions") != nullptr) return;
  reported_dropped_ = true;
  Log(LogLevel::kWarn,
      "found outdated CRDs of quotas, which drop most status fields: "
      "install the CRDs of this version (kubectl apply --server-side --force-conflicts)",
      {{"object", written.name}});
}

}  // namespace nos::controllers
