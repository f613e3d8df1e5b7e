#include "agent/loop/status_reporter.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "agent/conditions.h"
#include "base/text.h"
#include "reconcile/metrics.h"
#include "reconcile/node_write.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxMessage = 1000;  // bytes; the API server accepts 32 KiB, but people read it
// Time limit of an Event: pods wait for the GPUs.
constexpr auto kEventTimeout = std::chrono::seconds(3);

bool HasResult(const cluster::Node& node, const std::string& text) {
  const auto known = node.meta.annotations.find(cluster::kPlanResult);
  return known != node.meta.annotations.end() && known->second == text;
}

}  // namespace

Status StatusReporter::WriteStatus(const ObservedState& round,
                                   const std::vector<cluster::Gpu>& gpus,
                                   const std::optional<reconcile::PlanResult>& result,
                                   kube::Client& client) {
  const cluster::Node& node = *round.node;
  cluster::AnnotationPatch patch = cluster::StatusPatch(
      node, gpus, result ? result->plan : cluster::StatusPlan(node), round.mode.per_gpu);
  if (result) {
    std::string text = reconcile::WritePlanResult(*result);
    if (!HasResult(node, text)) patch[std::string(cluster::kPlanResult)] = std::move(text);
  }
  if (patch.empty()) return Status::Ok();
  // The patch contains differences from the node as this agent knows it, so it must not be applied
  // to a newer version.
  return reconcile::PatchNodeAnnotations(client, node_, patch, node.meta.resource_version)
      .status()
      .Within("report GPUs of node " + node_);
}

Status StatusReporter::WriteHealth(const cluster::Node& node, kube::Client& client, Time now) {
  if (health_ == nullptr) return Status::Ok();
  std::string reason = "Healthy", message;
  for (const device::HealthCondition& condition : health_->Conditions()) {
    if (message.empty()) reason = condition.Reason();
    message +=
        fmt::format("{}GPU {}: {}", message.empty() ? "" : "; ", condition.gpu, condition.message);
  }
  const bool healthy = message.empty();
  const reconcile::WantedCondition wanted{std::string(kGpusHealthy), healthy ? "True" : "False",
                                          std::move(reason), Shortened(message, kMaxMessage)};
  // A healthy node gets the condition only if it has had it before.
  if (healthy && FindCondition(node.conditions, wanted.type) == nullptr) return Status::Ok();
  if (reconcile::HasCondition(node, wanted)) return Status::Ok();
  NOS_RETURN_IF_ERROR(reconcile::WriteCondition(client, node, wanted, now));
  if (!healthy) {
    RecordEvent(node, kube::EventType::kWarning, wanted.reason,
                "Detected unhealthy GPUs on Node: " + wanted.message, client, now);
  }
  return Status::Ok();
}

// A node gets the condition when a mode is first pending. The condition is updated until none is
// pending, even if the reset rule changes meanwhile.
Status StatusReporter::WriteModeCondition(const cluster::Node& node,
                                          const reconcile::WantedCondition& wanted,
                                          kube::Client& client, Time now) {
  const bool waits = wanted.status == "True";
  if (!waits && FindCondition(node.conditions, wanted.type) == nullptr) return Status::Ok();
  if (reconcile::HasCondition(node, wanted)) return Status::Ok();
  NOS_RETURN_IF_ERROR(reconcile::WriteCondition(client, node, wanted, now));
  if (waits) {
    RecordEvent(node, kube::EventType::kNormal, wanted.reason,
                fmt::format("Waiting for a reboot of Node: {}", wanted.message), client, now);
  }
  return Status::Ok();
}

Status StatusReporter::WriteHandover(const cluster::Node& node,
                                     const reconcile::WantedCondition& wanted, kube::Client& client,
                                     Time now) {
  if (metrics_ != nullptr) {
    metrics_->SetAll(reconcile::kDeviceHandover,
                     {{{{"reason", wanted.reason}}, wanted.status == "True" ? 1.0 : 0.0}});
  }
  if (reconcile::HasCondition(node, wanted)) return Status::Ok();
  NOS_RETURN_IF_ERROR(reconcile::WriteCondition(client, node, wanted, now));
  if (wanted.status == "False") {
    RecordEvent(node, kube::EventType::kWarning, wanted.reason,
                "Failed to prepare devices for containers: " + wanted.message, client, now);
  }
  return Status::Ok();
}

void StatusReporter::AnnounceResult(const cluster::Node& node, const reconcile::PlanResult& result,
                                    kube::Client& client, Time now) {
  std::string text = reconcile::WritePlanResult(result);
  if (!HasResult(node, text) && text != result_) {
    if (result.applied) {
      RecordEvent(node, kube::EventType::kNormal, "Partitioned",
                  fmt::format("Applied plan {}", result.plan), client, now);
    } else {
      RecordEvent(node, kube::EventType::kWarning, "PartitioningIncomplete",
                  fmt::format("Failed to apply all of plan {}: {}", result.plan,
                              reconcile::Describe(result.obstacles)),
                  client, now);
    }
  }
  result_ = std::move(text);
}

void StatusReporter::AnnounceProblems(const ObservedState& round, kube::Client& client, Time now) {
  if (round.devices.problems != problems_) {
    problems_ = round.devices.problems;
    for (const std::string& problem : problems_) {
      RecordEvent(*round.node, kube::EventType::kWarning, "GpuNotUsable", problem, client, now);
    }
  }
  std::erase_if(violations_, [&](const PodViolation& known) {
    return std::ranges::find(round.lacks, known) == round.lacks.end();
  });
  kube::Client hasty = client.Within(kEventTimeout);
  for (const PodViolation& violation : round.lacks) {
    if (std::ranges::find(violations_, violation) != violations_.end()) continue;
    events_.Record(hasty, {"Pod", violation.ns, violation.name, violation.uid},
                   kube::EventType::kWarning, violation.reason, violation.message, now);
    violations_.push_back(violation);
  }
}

void StatusReporter::AnnounceIgnored(const cluster::Node& node,
                                     const std::vector<cluster::Gpu>& gpus,
                                     const std::vector<gpu::IgnoredGeometry>& ignored,
                                     kube::Client& client, Time now) {
  for (const gpu::IgnoredGeometry& geometry : ignored) {
    const auto has = [&](const cluster::Gpu& one) { return one.model->name() == geometry.model; };
    if (std::ranges::none_of(gpus, has) || !ignored_.insert(geometry.text).second) continue;
    RecordEvent(node, kube::EventType::kWarning, "GeometryIgnored",
                "Ignoring geometry of the catalogue that no GPU can have: " + geometry.text, client,
                now);
  }
}

void StatusReporter::AnnounceOffer(const cluster::Node& node, const Status& offered,
                                   std::optional<Duration> patience, kube::Client& client,
                                   Time now) {
  const bool unavailable = offered.code() == Code::kUnavailable;
  unavailable_since_ = unavailable ? unavailable_since_.value_or(now) : std::optional<Time>();
  const bool passes =
      offered.ok() || (unavailable && (!patience || now < *unavailable_since_ + *patience));
  std::string error = passes ? "" : offered.message();
  if (!error.empty() && error != offer_error_) {
    RecordEvent(node, kube::EventType::kWarning, "DevicesNotOffered",
                "Failed to offer devices of Node: " + error, client, now);
  }
  offer_error_ = std::move(error);
}

void StatusReporter::AnnounceFailure(const cluster::Node& node, const device::Operation& operation,
                                     const Status& error, kube::Client& client, Time now) {
  RecordEvent(node, kube::EventType::kWarning, "DeviceOperationFailed",
              fmt::format("Failed to {}: {}", operation.ToString(), error.message()), client, now);
}

void StatusReporter::Measure(const NodeDevices& devices) const {
  if (metrics_ == nullptr) return;
  std::map<MetricLabels, double> instances;
  for (const cluster::Gpu& gpu : ToGpus(devices)) {
    for (const cluster::Instance& instance : gpu.instances) {
      ++instances[{{"gpu", std::to_string(gpu.index)},
                   {"model", gpu.model->name()},
                   {"profile", gpu.model->profile(instance.placement.profile).name},
                   {"state", instance.used ? "used" : "free"}}];
    }
  }
  metrics_->SetAll(reconcile::kInstances, {instances.begin(), instances.end()});
  if (health_ == nullptr) return;
  std::map<MetricLabels, double> conditions;
  for (const device::HealthCondition& condition : health_->Conditions()) {
    conditions[{{"gpu", std::to_string(condition.gpu)}, {"reason", condition.Reason()}}] = 1;
  }
  metrics_->SetAll(reconcile::kGpuConditions, {conditions.begin(), conditions.end()});
}

void StatusReporter::RecordEvent(const cluster::Node& node, kube::EventType type,
                                 std::string_view reason, std::string_view message,
                                 kube::Client& client, Time now) {
  kube::Client hasty = client.Within(kEventTimeout);
  // Events of a node carry its name as UID, as the kubelet's do, so that kubectl finds them.
  events_.Record(hasty, {"Node", "", node.meta.name, node.meta.name}, type, reason, message, now);
}

}  // namespace nos::agent
