// Keeps the label nos.nebuly.com/capacity of pods up to date: in-quota or over-quota on each pod
// that counts in a quota (quota/standing.h), removed where no quota is in force.
//
//   PodLabels labels(accounts, config.writes_per_call, metrics);
//   labels.OnPodUpdate("team-a/p1");
//   labels.Find(view, now);                     // queues the pods whose label differs
//   NOS_RETURN_IF_ERROR(labels.Write(view, client, now));
//
// Finished pods keep their label. Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "controllers/quota/accounts.h"
#include "controllers/quota/patch_queue.h"

namespace nos::controllers {

class PodLabels {
 public:
  // `accounts` and `metrics` must outlive this; `metrics` may be null.
  PodLabels(QuotaAccounts& accounts, size_t writes_per_call, Metrics* metrics)
      : accounts_(accounts), writes_per_call_(writes_per_call), due_("label", metrics) {}

  // Looks at all pods next time, and trusts the caches instead of earlier writes.
  void Restart();
  // Looks at all pods next time, because the quotas in force have changed.
  void OnQuotaChange();
  // Trusts the cache for this pod instead of an earlier write.
  void OnPodUpdate(const std::string& pod) { written_.erase(pod); }
  // Looks at all pods of the account next time.
  void CheckAccount(size_t account) { changed_.insert(account); }
  // Looks at this pod next time.
  void CheckPod(const std::string& pod) { without_quota_.insert(pod); }

  void Find(const reconcile::Listers& view, Time now);
  // Error: of the last label that could not be written; it is written again after a back-off.
  Status Write(const reconcile::Listers& view, kube::Client& client, Time now);
  Time NextDue() const { return due_.NextDue(); }

 private:
  // Absent: the label must not be changed. Empty: it is removed.
  std::optional<std::string> WantedLabel(const cluster::Pod& pod);
  std::string LabelOf(const cluster::Pod& pod) const;

  QuotaAccounts& accounts_;
  const size_t writes_per_call_;
  PatchQueue due_;
  bool all_ = true;
  std::set<size_t> changed_;  // accounts whose pods may have changed between in- and over-quota
  std::set<std::string> without_quota_;  // keys of pods in namespaces without a quota in force
  std::map<std::string, std::string> written_;  // by pod: labels that are newer than the caches
};

}  // namespace nos::controllers
