// Publishes the agent's state: annotations and conditions of its node, Events, metrics.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "agent/nebuly_plugin.h"
#include "agent/node_agent.h"
#include "base/text.h"
#include "reconcile/condition.h"
#include "reconcile/metrics.h"
#include "reconcile/node_write.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxMessage = 1000;  // bytes; the API server accepts 32 KiB, but people read it

}  // namespace

reconcile::PlanResult Agent::ResultOf(const device::Progress& progress,
                                      const ObservedState& round) const {
  reconcile::PlanResult result{plan_, true, progress.obstacles};
  const std::vector<gpu::Obstacle> failed = failures_.Obstacles();
  for (const auto* more : {&round.unreadable, &failed}) {
    result.obstacles.insert(result.obstacles.end(), more->begin(), more->end());
  }
  result.applied = result.obstacles.empty();
  return result;
}

Status Agent::Report(const ObservedState& round, const std::optional<reconcile::PlanResult>& result,
                     kube::Client& client) {
  std::vector<cluster::Gpu> gpus =
      ToGpus(extras_.nebuly_shares ? AsShown(round.devices, device_plugin_) : round.devices);
  const std::set<int> whole = HeldWhole(round.devices);
  const bool hybrid = IsHybrid(*round.node);
  const std::set<int> not_taken_over = NotTakenOver(round);
  std::erase_if(gpus, [&](const cluster::Gpu& gpu) {  // the partitioner must not plan on these GPUs
    return whole.contains(gpu.index) || not_taken_over.contains(gpu.index) ||
           (!hybrid && failures_.CannotEnableMig(gpu.index));
  });
  cluster::AnnotationPatch patch = cluster::StatusPatch(
      *round.node, gpus, result ? result->plan : cluster::StatusPlan(*round.node), hybrid);
  if (result) {
    const std::string key(cluster::kPlanResult);
    const auto known = round.node->meta.annotations.find(key);
    std::string text = reconcile::WritePlanResult(*result);
    if (known == round.node->meta.annotations.end() || known->second != text) {
      patch[key] = std::move(text);
    }
  }
  if (patch.empty()) return Status::Ok();
  // The patch contains differences from the node as this agent knows it, so it must not be applied
  // to a newer version.
  return reconcile::PatchNodeAnnotations(client, node_, patch, round.node->meta.resource_version)
      .status()
      .Within("report GPUs of node " + node_);
}

void Agent::Announce(const ObservedState& round, const reconcile::PlanResult& result,
                     kube::Client& client, Time now) {
  std::string text = reconcile::WritePlanResult(result);
  const auto known = round.node->meta.annotations.find(cluster::kPlanResult);
  const bool old = known != round.node->meta.annotations.end() && known->second == text;
  if (!old && text != announced_) {
    if (result.applied) {
      Say(client, *round.node, kube::EventType::kNormal, "Partitioned",
          fmt::format("Applied plan {}", result.plan), now);
    } else {
      Say(client, *round.node, kube::EventType::kWarning, "PartitioningIncomplete",
          fmt::format("plan {}: {}", result.plan, reconcile::Describe(result.obstacles)), now);
    }
  }
  announced_ = std::move(text);
}

// A healthy node gets the condition only if it has had it before.
Status Agent::ReportHealth(const ObservedState& round, kube::Client& client, Time now) {
  if (extras_.health == nullptr) return Status::Ok();
  std::string reason = "Healthy", message;
  for (const device::HealthCondition& condition : extras_.health->Conditions()) {
    if (message.empty()) reason = condition.Reason();
    message +=
        fmt::format("{}GPU {}: {}", message.empty() ? "" : "; ", condition.gpu, condition.message);
  }
  const reconcile::WantedCondition wanted{std::string(kGpusHealthy),
                                          message.empty() ? "True" : "False", std::move(reason),
                                          Shortened(message, kMaxMessage)};
  const bool never_had = FindCondition(round.node->conditions, wanted.type) == nullptr;
  if (reconcile::HasCondition(*round.node, wanted) || (never_had && wanted.status == "True")) {
    return Status::Ok();
  }
  NOS_RETURN_IF_ERROR(reconcile::WriteCondition(client, *round.node, wanted, now));
  if (wanted.status == "False") {
    Say(client, *round.node, kube::EventType::kWarning, wanted.reason, wanted.message, now);
  }
  return Status::Ok();
}

void Agent::Measure(const ObservedState& round) const {
  if (extras_.metrics == nullptr) return;
  std::map<MetricLabels, double> instances;
  for (const cluster::Gpu& gpu : ToGpus(round.devices)) {
    for (const cluster::Instance& instance : gpu.instances) {
      ++instances[{{"gpu", std::to_string(gpu.index)},
                   {"model", gpu.model->name()},
                   {"profile", gpu.model->profile(instance.placement.profile).name},
                   {"state", instance.used ? "used" : "free"}}];
    }
  }
  extras_.metrics->SetAll(reconcile::kInstances, {instances.begin(), instances.end()});
  if (extras_.health == nullptr) return;
  std::map<MetricLabels, double> conditions;
  for (const device::HealthCondition& condition : extras_.health->Conditions()) {
    conditions[{{"gpu", std::to_string(condition.gpu)}, {"reason", condition.Reason()}}] = 1;
  }
  extras_.metrics->SetAll(reconcile::kGpuConditions, {conditions.begin(), conditions.end()});
}

void Agent::AnnounceOffer(const ObservedState& round, const Status& offered, kube::Client& client,
                          Time now) {
  const bool passes = offered.ok() || offered.code() == Code::kUnavailable;
  std::string trouble = passes ? "" : offered.message();
  if (!trouble.empty() && trouble != offer_trouble_) {
    Say(client, *round.node, kube::EventType::kWarning, "DevicesNotOffered", trouble, now);
  }
  offer_trouble_ = std::move(trouble);
}

void Agent::AnnounceProblems(const ObservedState& round, kube::Client& client, Time now) {
  if (round.devices.problems == problems_) return;
  problems_ = round.devices.problems;
  for (const std::string& problem : problems_) {
    Say(client, *round.node, kube::EventType::kWarning, "GpuNotUsable", problem, now);
  }
}

// Uses a short time limit: pods wait for the GPUs.
void Agent::Say(kube::Client& client, const cluster::Node& node, kube::EventType type,
                std::string_view reason, std::string_view message, Time now) {
  kube::Client hasty = client.Within(std::chrono::seconds(3));
  // Events of a node carry its name as UID, as the kubelet's do, so that kubectl finds them.
  events_.Record(hasty, {"Node", "", node.meta.name, node.meta.name}, type, reason, message, now);
}

}  // namespace nos::agent
