#include <fmt/format.h>

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

}  // namespace

void CheckScheduling(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Scheduling and quotas");
  CheckScheduler(snapshot, findings);
  CheckQuotas(snapshot, findings);
}

}  // namespace nos::cmd
