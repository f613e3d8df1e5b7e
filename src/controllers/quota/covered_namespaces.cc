#include "controllers/quota/covered_namespaces.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace nos::controllers {
namespace {

const kube::Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
constexpr Duration kLookAgain = std::chrono::minutes(1);  // for a ConfigMap that was missing

}  // namespace

CoveredNamespaces::CoveredNamespaces(std::string ns, std::string name, Metrics* metrics)
    : ns_(std::move(ns)), name_(std::move(name)), due_("namespaces", metrics) {}

void CoveredNamespaces::Restart() {
  outdated_ = true;
  wanted_.clear();
}

void CoveredNamespaces::Find(const cluster::ClusterContext& context, Time now) {
  if (name_.empty()) return;
  if (std::exchange(outdated_, false)) {
    std::set<std::string> namespaces;
    for (const auto& [key, quota] : context.composite_quotas.rows()) {
      namespaces.insert(quota->namespaces.begin(), quota->namespaces.end());
    }
    std::string list = ",";
    for (const std::string& name : namespaces) list += name + ",";
    if (list != wanted_) due_.Add(name_, now);
    wanted_ = std::move(list);
  }
  if (now >= refresh_ && !due_.Failing(name_)) due_.Add(name_, now);
}

Status CoveredNamespaces::Write(kube::Client& client, Time now) {
  if (!due_.Take(now)) return Status::Ok();
  const Json patch{{"data", {{"namespaces", wanted_}}}};
  const Status status =
      client.Patch(kConfigMaps, ns_, name_, kube::PatchType::kMerge, patch).status();
  due_.Settle(name_, status, now);
  refresh_ = now + (status.ok() ? kRefresh : kLookAgain);
  return status.ok() || IsGone(status) ? Status::Ok()
                                       : status.Within("ConfigMap " + ns_ + "/" + name_);
}

Time CoveredNamespaces::NextDue() const {
  return name_.empty() ? Time::max() : std::min(due_.NextDue(), refresh_);
}

}  // namespace nos::controllers
