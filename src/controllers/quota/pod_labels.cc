#include "controllers/quota/pod_labels.h"

#include <utility>
#include <vector>

#include "quota/standing.h"

namespace nos::controllers {
namespace {

kube::NamedPatch LabelPatch(const cluster::Pod& pod, const std::string& label) {
  Json value = label.empty() ? Json() : Json(label);
  JsonObject labels{{quota::kCapacityLabel, std::move(value)}};
  return {pod.meta.ns,
          pod.meta.name,
          {{"metadata", {{"uid", pod.meta.uid}, {"labels", std::move(labels)}}}}};
}

}  // namespace

void PodLabels::Restart() {
  all_ = true;
  written_.clear();
}

void PodLabels::OnQuotaChange() {
  all_ = true;
  changed_.clear();  // these are numbers of the former accounts
}

std::optional<std::string> PodLabels::WantedLabel(const cluster::Pod& pod) {
  quota::Ledger& ledger = accounts_.ledger();
  const bool counts = ledger.ChargeOf(pod.Key()) != nullptr;
  const bool has_quota = ledger.balance().AccountOf(pod.meta.ns).has_value();
  if (!has_quota && (counts || pod.Finished())) return "";
  if (!counts) return std::nullopt;
  return std::string(ledger.IsOverQuota(pod.Key()) ? quota::kOverQuota : quota::kInQuota);
}

std::string PodLabels::LabelOf(const cluster::Pod& pod) const {
  const auto written = written_.find(pod.Key());
  if (written != written_.end()) return written->second;
  const auto found = pod.meta.labels.find(quota::kCapacityLabel);
  return found == pod.meta.labels.end() ? "" : found->second;
}

void PodLabels::Find(const reconcile::Listers& view, Time now) {
  const auto check = [&](const std::shared_ptr<const cluster::Pod>& pod) {
    if (pod == nullptr || due_.Failing(pod->Key())) return;
    const auto wanted = WantedLabel(*pod);
    if (wanted && *wanted != LabelOf(*pod)) due_.Add(pod->Key(), now);
  };
  if (all_) {
    for (const auto& pod : *view.pods.Snapshot()) check(pod);
  } else {
    changed_.merge(accounts_.ledger().TakeChanged());
    for (const size_t account : changed_) {
      for (const auto& pod : accounts_.ledger().StandingOf(account).pods) check(pod);
    }
    for (const std::string& key : without_quota_) check(view.pods.Get(key));
  }
  all_ = false;
  changed_.clear();
  without_quota_.clear();
}

Status PodLabels::Write(const reconcile::Listers& view, kube::Client& client, Time now) {
  std::vector<kube::NamedPatch> patches;
  std::vector<std::pair<std::string, std::string>> labels;  // key, label
  while (patches.size() < writes_per_call_) {
    const std::optional<std::string> key = due_.Take(now);
    if (!key) break;
    const auto pod = view.pods.Get(*key);
    const auto wanted = pod == nullptr ? std::nullopt : WantedLabel(*pod);
    if (!wanted || *wanted == LabelOf(*pod)) {
      due_.Drop(*key);
      continue;
    }
    patches.push_back(LabelPatch(*pod, *wanted));
    labels.emplace_back(*key, *wanted);
  }
  Status error;
  const auto answers = client.PatchAll(kube::kPods, kube::PatchType::kMerge, patches);
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto& [key, label] = labels[i];
    if (due_.Settle(key, answers[i].status(), now)) {
      written_[key] = label;
    } else if (!IsGone(answers[i].status())) {
      error = answers[i].status().Within("label of pod " + key);
    }
  }
  return error;
}

}  // namespace nos::controllers
