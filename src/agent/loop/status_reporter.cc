#include "agent/loop/status_reporter.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "agent/conditions.h"
#include "agent/events.h"
#include "agent/metrics.h"
#include "base/text.h"
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
    if (!message.empty()) message += "; ";
    if (condition.gpu != device::HealthCondition::kNoGpu) {
      message += fmt::format("GPU {}: ", condition.gpu);
    }
    message += condition.message;
  }
  const bool healthy = message.empty();
  const reconcile::WantedCondition wanted{std::string(kGpusHealthy), healthy ? "True" : "False",
                                          std::move(reason), Shortened(message, kMaxMessage)};
  // A healthy node gets the condition only if it has had it before.
  if (healthy && FindCondition(node.conditions, wanted.type) == nullptr) return Status::Ok();
  if (reconcile::HasCondition(node, wanted)) return Status::Ok();
  NOS_RETURN_IF_ERROR(reconcile::WriteCondition(client, node, wanted, now));
  if (!healthy) {
    Record(events::GpusUnhealthy(node_, wanted.reason, wanted.message), client, now);
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
    Record(events::RebootAwaited(node_, wanted.reason, wanted.message), client, now);
  }
  return Status::Ok();
}

Status StatusReporter::WriteHandover(const cluster::Node& node,
                                     const reconcile::WantedCondition& wanted, kube::Client& client,
                                     Time now) {
  if (metrics_ != nullptr) {
    metrics_->SetAll(kHandover,
                     {{{{"reason", wanted.reason}}, wanted.status == "True" ? 1.0 : 0.0}});
  }
  if (reconcile::HasCondition(node, wanted)) return Status::Ok();
  NOS_RETURN_IF_ERROR(reconcile::WriteCondition(client, node, wanted, now));
  if (wanted.status == "False") {
    Record(events::DevicesNotPrepared(node_, wanted.reason, wanted.message), client, now);
  }
  return Status::Ok();
}

void StatusReporter::AnnounceResult(const cluster::Node& node, const reconcile::PlanResult& result,
                                    kube::Client& client, Time now) {
  std::string text = reconcile::WritePlanResult(result);
  if (!HasResult(node, text) && text != result_) {
    Record(result.applied ? events::Partitioned(node_, result.plan)
                          : events::PartitioningIncomplete(node_, result.plan,
                                                           reconcile::Describe(result.obstacles)),
           client, now);
  }
  result_ = std::move(text);
}

void StatusReporter::AnnounceProblems(const ObservedState& round, kube::Client& client, Time now) {
  if (round.devices.problems != problems_) {
    problems_ = round.devices.problems;
    for (const std::string& problem : problems_) {
      Record(events::GpuNotUsable(node_, problem), client, now);
    }
  }
  std::erase_if(violations_, [&](const PodViolation& known) {
    return std::ranges::find(round.violations, known) == round.violations.end();
  });
  for (const PodViolation& violation : round.violations) {
    if (std::ranges::find(violations_, violation) != violations_.end()) continue;
    Record(events::RequirementViolated(violation.ns, violation.name, violation.uid,
                                       violation.reason, violation.message),
           client, now);
    violations_.push_back(violation);
  }
}

void StatusReporter::AnnounceIgnored(const std::vector<cluster::Gpu>& gpus,
                                     const std::vector<gpu::IgnoredGeometry>& ignored,
                                     kube::Client& client, Time now) {
  for (const gpu::IgnoredGeometry& geometry : ignored) {
    const auto has = [&](const cluster::Gpu& one) { return one.model->name() == geometry.model; };
    if (std::ranges::none_of(gpus, has) || !ignored_.insert(geometry.text).second) continue;
    Record(events::GeometryIgnored(node_, geometry.text), client, now);
  }
}

void StatusReporter::AnnounceOffer(const Status& offered, std::optional<Duration> patience,
                                   kube::Client& client, Time now) {
  const bool unavailable = offered.code() == Code::kUnavailable;
  unavailable_since_ = unavailable ? unavailable_since_.value_or(now) : std::optional<Time>();
  const bool passes =
      offered.ok() || (unavailable && (!patience || now < *unavailable_since_ + *patience));
  std::string error = passes ? "" : offered.message();
  if (!error.empty() && error != offer_error_) {
    Record(events::DevicesNotOffered(node_, error), client, now);
  }
  offer_error_ = std::move(error);
}

void StatusReporter::AnnounceFailure(const device::Operation& operation, const Status& error,
                                     kube::Client& client, Time now) {
  Record(events::DeviceOperationFailed(node_, operation.ToString(), error.message()), client, now);
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
  metrics_->SetAll(kInstances, {instances.begin(), instances.end()});
  if (health_ == nullptr) return;
  std::map<MetricLabels, double> conditions;
  for (const device::HealthCondition& condition : health_->Conditions()) {
    const bool one = condition.gpu != device::HealthCondition::kNoGpu;
    conditions[{{"gpu", one ? std::to_string(condition.gpu) : ""},
                {"reason", condition.Reason()}}] = 1;
  }
  metrics_->SetAll(kGpuConditions, {conditions.begin(), conditions.end()});
}

void StatusReporter::Record(const kube::EventNote& note, kube::Client& client, Time now) {
  kube::Client hasty = client.Within(kEventTimeout);
  events_.Record(hasty, note.object, note.type, note.reason, note.message, now);
}

}  // namespace nos::agent
