#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

void CheckScheduler(const Snapshot& snapshot, Findings& findings) {
  if (!snapshot.pods.status.ok()) {
    return findings.Unread("SchedulerOfPods", "pods", snapshot.pods.status);
  }
  std::vector<std::string> waiting;
  size_t naming = 0;
  for (const PodFacts& pod : snapshot.pods.items) {
    if (pod.scheduler != "nos-scheduler") continue;
    ++naming;
    if (pod.node.empty() && pod.phase == "Pending") waiting.push_back(pod.Key());
  }
  const bool runs = !snapshot.Running("scheduler").empty();
  if (runs) {
    return findings.Ok("SchedulerOfPods",
                       Count(naming, "pod") + " with schedulerName nos-scheduler");
  }
  findings.FailIfAny("SchedulerOfPods", waiting,
                     "pods wait for nos-scheduler, which is not installed",
                     "install it (scheduler.enabled=true), or change schedulerName",
                     "no pod waits for nos-scheduler");
}

bool InForce(const Json& quota) {
  const Json* conditions = Find(quota, "status", "conditions");
  if (conditions == nullptr || !conditions->is_array()) return true;
  for (const Json& one : conditions->get_array()) {
    if (FindString(one, "type") == "InForce" && FindString(one, "status") == "False") return false;
  }
  return true;
}

void CheckQuotas(const Snapshot& snapshot, Findings& findings) {
  if (!snapshot.quotas.served()) {
    return findings.NotChecked("Quotas", "the kinds of quotas are not installed");
  }
  if (!snapshot.quotas.status.ok()) {
    return findings.Unread("Quotas", "quotas", snapshot.quotas.status);
  }
  std::vector<std::string> broken, without_status;
  for (const Json& quota : snapshot.quotas.items) {
    const std::string name = fmt::format("{}/{}", FindString(quota, "metadata", "namespace"),
                                         FindString(quota, "metadata", "name"));
    if (!InForce(quota)) broken.push_back(name);
    if (Find(quota, "status") == nullptr) without_status.push_back(name);
  }
  findings.FailIfAny("Quotas", broken, "quotas that do not count: condition InForce is False",
                     "kubectl describe the quota: the condition names the reason",
                     Count(snapshot.quotas.items.size(), "quota") + " readable");
  findings.WarnIfAny("QuotaStatus", without_status, "quotas without a status",
                     "the operator writes it: is one installed, and does one lead?",
                     "every quota has a status");
}

// Pods in many clusters wait by design, so each is a warning at most, and few are named.
void CheckPendingPods(const Snapshot& snapshot, Findings& findings) {
  constexpr size_t kMaxNamed = 5;
  if (!snapshot.pods.status.ok()) {
    return findings.Unread("PendingPods", "pods", snapshot.pods.status);
  }
  std::vector<const PodFacts*> pending;
  for (const PodFacts& pod : snapshot.pods.items) {
    if (pod.pending) pending.push_back(&pod);
  }
  if (pending.empty()) return findings.Ok("PendingPods", "no pod that asks for GPUs is pending");
  std::ranges::sort(pending, {}, [](const PodFacts* pod) {
    return std::tuple(pod->pending->created, pod->Key());
  });
  std::vector<std::string> names;
  for (const PodFacts* pod : pending) names.push_back(pod->Key());
  findings.Warn("PendingPods", Count(pending.size(), "pod") + " pending that ask for GPUs",
                pending.size() > kMaxNamed
                    ? fmt::format("the {} oldest follow; nos get pods has all", kMaxNamed)
                    : "",
                std::move(names));
  if (pending.size() > kMaxNamed) pending.resize(kMaxNamed);
  for (const PodFacts* pod : pending) {
    if (const auto& waits = pod->pending) {
      findings.Warn("PendingPod", waits->headline, waits->help);
    }
  }
}

}  // namespace

void CheckScheduling(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Scheduling and quotas");
  CheckScheduler(snapshot, findings);
  CheckPendingPods(snapshot, findings);
  CheckQuotas(snapshot, findings);
}

}  // namespace nos::cmd
