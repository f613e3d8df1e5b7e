#include "controllers/scheduler/departed_pods.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "cluster/annotations.h"
#include "cluster/pod_end.h"
#include "cluster/resource_names.h"
#include "cluster/resources.h"
#include "dra/device_index.h"
#include "scheduling/lost_node.h"
#include "scheduling/preemption.h"

namespace nos::controllers {
namespace {

// A report written sooner after the deletion may be older than it.
constexpr Duration kReportDelay = std::chrono::seconds(2);
// How often a stand-in on a lost or absent node is looked at, and when an absent node is given up.
constexpr Duration kRecheck = std::chrono::minutes(1), kAbsent = std::chrono::hours(1);

bool HoldsAny(const cluster::ResourceVector& held) {
  return std::ranges::any_of(held.entries(), [](const auto& entry) { return entry.second > 0; });
}

bool IsGpuResource(cluster::ResourceId id) {
  static const cluster::ResourceId kWhole = cluster::InternResource(cluster::kWholeGpuResource);
  return cluster::IsSliceResource(id) || id == kWhole;
}

// True if the stand-in holds more than devices of claims. Every pod requests the resource "pods".
bool HoldsGpus(const cluster::Pod& stand_in) {
  const cluster::ResourceVector requests = cluster::RequestsOf(stand_in);
  return std::ranges::any_of(requests.entries(), [](const auto& entry) {
    return IsGpuResource(entry.first) && entry.second > 0;
  });
}

// The GPU resources of the pod, less those that the node's agent reports as held by it.
cluster::ResourceVector Unreported(const cluster::Pod& pod,
                                   const cluster::ClusterSnapshot& snapshot) {
  cluster::ResourceVector held;
  const cluster::NodeInfo* node = snapshot.Find(pod.node_name);
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  for (const auto& [id, amount] : requests.entries()) {
    const bool by_claim =
        !pod.extended_claim.empty() && node != nullptr && node->allocatable.Get(id) <= 0;
    if (IsGpuResource(id) && amount > 0 && !by_claim) held.Set(id, amount);
  }
  if (held.entries().empty() || node == nullptr) return held;
  // The node's snapshot no longer has the holder's name, so it is read again.
  const cluster::NodeGpus reported = cluster::ReadNodeGpus(*node->node, snapshot.catalogue());
  for (const cluster::Gpu& gpu : reported.gpus) {
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.pod != pod.Key()) continue;
      const auto& profile = gpu.model->profile(instance.placement.profile);
      const cluster::ResourceId id = cluster::InternResource(profile.resource_name);
      if (held.Get(id) > 0) held.Set(id, held.Get(id) - 1);
    }
  }
  return held;
}

// The stand-in counts like a pod that a preemption is ending: no pod preempts it, and a pod that is
// nominated for its place waits.
DepartedPods::Pod MakeStandIn(const cluster::Pod& pod, const cluster::ResourceVector& held,
                              Time now) {
  auto stand_in = std::make_shared<cluster::Pod>();
  stand_in->meta.ns = pod.meta.ns;
  stand_in->meta.name = fmt::format("{} (deleted {})", pod.meta.name, pod.meta.uid);
  stand_in->meta.uid = pod.meta.uid;
  stand_in->meta.created = pod.meta.created;
  stand_in->meta.deleted = now;
  stand_in->node_name = pod.node_name;
  stand_in->claims = pod.claims;
  stand_in->extended_claim = pod.extended_claim;
  stand_in->priority = pod.priority;
  stand_in->phase = "Running";
  cluster::Condition ending;
  ending.type = "DisruptionTarget";
  ending.status = "True";
  ending.reason = "PreemptionByScheduler";
  stand_in->conditions.push_back(std::move(ending));
  cluster::Container container;
  container.name = "deleted";
  for (const auto& [id, amount] : held.entries()) {
    if (amount > 0) {
      container.requests[cluster::ResourceName(id)] = Quantity::FromValue(amount);
    }
  }
  stand_in->containers.push_back(std::move(container));
  return stand_in;
}

}  // namespace

void DepartedPods::Add(const cluster::Pod& pod, bool gone, Time now) {
  cluster::ResourceVector held;
  if (gone) held = Unreported(pod, engine_.snapshot());
  if (!HoldsAny(held) && !HoldsClaims(pod)) return;
  Pod stand_in = MakeStandIn(pod, held, now);
  if (HoldsAny(held)) {
    Log(LogLevel::kInfo, "holding GPUs of a Pod that was deleted before it ended",
        {{"pod", pod.Key()}, {"node", pod.node_name}});
  }
  const std::string key = stand_in->Key();
  StandIn& added = stand_ins_[key] = {std::move(stand_in), cluster::GracePeriodOf(pod), now, now};
  added.until = now + Longest(added);
  if (engine_.snapshot().Find(pod.node_name) != nullptr) Count(added, now);
}

void DepartedPods::Count(const StandIn& stand_in, Time now) {
  engine_.SetPod(stand_in.pod);
  terminating_.OnPod(stand_in.pod->Key(), stand_in.pod, false, now, stand_in.until);
}

void DepartedPods::Uncount(const std::string& key) {
  terminating_.OnPod(key, nullptr, false, Time());
  engine_.RemovePod(key);
}

// True if the node's agent reports who holds each of its resources.
bool DepartedPods::AgentReports(const StandIn& stand_in) const {
  const cluster::NodeInfo* node = engine_.snapshot().Find(stand_in.pod->node_name);
  const cluster::ResourceVector held = cluster::RequestsOf(*stand_in.pod);
  return node != nullptr && std::ranges::all_of(held.entries(), [&](const auto& entry) {
           return !IsGpuResource(entry.first) || cluster::IsManagedOn(*node, entry.first);
         });
}

bool DepartedPods::HoldsClaims(const cluster::Pod& pod) const {
  const auto& claims = engine_.snapshot().context().device_claims;
  return std::ranges::any_of(dra::ClaimKeysOf(pod), [&](const std::string& key) {
    const dra::ResourceClaim* claim = claims.Find(key);
    return claim != nullptr && claim->allocation && dra::IsReservedFor(*claim, pod);
  });
}

Duration DepartedPods::Longest(const StandIn& stand_in) const {
  const Duration longest = stand_in.grace + cluster::kKillTime;
  return AgentReports(stand_in) ? std::min(longest, agent_timeout_) : longest;
}

std::vector<DepartedPods::Pod> DepartedPods::OnNode(const Node& before, const Node& after,
                                                    Time now) {
  const bool back = before == nullptr || scheduling::IsLost(*before);
  const bool reported = before != nullptr && !cluster::ReportTheSame(*before, *after);
  std::vector<std::string> over;
  for (auto& [key, stand_in] : stand_ins_) {
    if (stand_in.pod->node_name != after->meta.name) continue;
    const bool lost = scheduling::IsLost(*after);
    if (back && !lost) stand_in.until = now + Longest(stand_in);
    if (before == nullptr || (back && !lost)) Count(stand_in, now);
    if (lost) continue;
    if (reported && !back && now >= stand_in.since + kReportDelay && AgentReports(stand_in) &&
        !HoldsClaims(*stand_in.pod)) {
      over.push_back(key);
    }
  }
  return Remove(over);
}

std::vector<DepartedPods::Pod> DepartedPods::OnNodeRemoved(const std::string& node) {
  std::vector<Pod> uncounted;
  for (const auto& [key, stand_in] : stand_ins_) {
    if (stand_in.pod->node_name != node) continue;
    Uncount(key);
    uncounted.push_back(stand_in.pod);
  }
  return uncounted;
}

std::vector<DepartedPods::Pod> DepartedPods::OnClaims() {
  std::vector<std::string> over;
  for (const auto& [key, stand_in] : stand_ins_) {
    const cluster::Pod& pod = *stand_in.pod;
    const bool claims_only = pod.HasClaims() && !HoldsGpus(pod);
    if (claims_only && !HoldsClaims(pod)) over.push_back(key);
  }
  return Remove(over);
}

std::vector<DepartedPods::Pod> DepartedPods::TakeExpired(Time now) {
  std::vector<std::string> over;
  for (auto& [key, stand_in] : stand_ins_) {
    if (now < stand_in.until) continue;
    const cluster::NodeInfo* node = engine_.snapshot().Find(stand_in.pod->node_name);
    const bool absent = node == nullptr;
    if (HoldsClaims(*stand_in.pod) || (absent && now < stand_in.since + kAbsent) ||
        (!absent && scheduling::IsLost(*node->node))) {
      stand_in.until = now + kRecheck;
    } else {
      over.push_back(key);
    }
  }
  return Remove(over);
}

std::optional<Time> DepartedPods::NextDue() const {
  std::optional<Time> next;
  for (const auto& [key, stand_in] : stand_ins_) {
    next = std::min(next.value_or(Time::max()), stand_in.until);
  }
  return next;
}

std::vector<DepartedPods::Pod> DepartedPods::Remove(const std::vector<std::string>& keys) {
  std::vector<Pod> removed;
  removed.reserve(keys.size());
  for (const std::string& key : keys) {
    Uncount(key);
    removed.push_back(stand_ins_.extract(key).mapped().pod);
  }
  return removed;
}

}  // namespace nos::controllers
