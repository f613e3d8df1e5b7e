// Publishes the agent's state: annotations and conditions of its node, Events, metrics.
//
//   StatusReporter reporter(name, &health, &metrics);
//   NOS_RETURN_IF_ERROR(reporter.WriteStatus(round, gpus, result, client));  // others wait for it
//   NOS_RETURN_IF_ERROR(reporter.WriteHealth(*round.node, client, now));
//   if (result) reporter.AnnounceResult(*round.node, *result, client, now);
//   reporter.AnnounceProblems(round, client, now);
//
// Everything is written once per change: the object as the caller knows it is compared for
// annotations and conditions, and the last text is remembered for Events. Events are a courtesy:
// they have a short time limit, and their failure is ignored. Owned by one thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/node/observed_state.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "device/health.h"
#include "gpu/catalogue.h"
#include "kube/client.h"
#include "kube/event_recorder.h"
#include "reconcile/condition.h"
#include "reconcile/plan_result.h"

namespace nos::agent {

class StatusReporter {
 public:
  // `health`, `metrics`: null if there is none; otherwise they outlive this.
  StatusReporter(std::string node, const device::GpuHealth* health, Metrics* metrics)
      : node_(std::move(node)), health_(health), metrics_(metrics) {}

  // Writes the GPUs and, if the plan has ended, its result into annotations. Error: that of the
  // client; kConflict if round.node is outdated.
  Status WriteStatus(const ObservedState& round, const std::vector<cluster::Gpu>& gpus,
                     const std::optional<reconcile::PlanResult>& result, kube::Client& client);
  // Writes condition kGpusHealthy, with an Event if a GPU is not.
  Status WriteHealth(const cluster::Node& node, kube::Client& client, Time now);
  // Writes the condition of a sharing mode, with an Event if it is True: the GPUs keep their MIG
  // mode until then.
  Status WriteModeCondition(const cluster::Node& node, const reconcile::WantedCondition& wanted,
                            kube::Client& client, Time now);

  // Writes condition kDeviceHandover and its gauge, with an Event if it is False.
  Status WriteHandover(const cluster::Node& node, const reconcile::WantedCondition& wanted,
                       kube::Client& client, Time now);

  void AnnounceResult(const cluster::Node& node, const reconcile::PlanResult& result,
                      kube::Client& client, Time now);
  // Events for GPUs that cannot be used, and on each pod that does not meet the requirements of its
  // shares.
  void AnnounceProblems(const ObservedState& round, kube::Client& client, Time now);
  // An Event for each geometry of the user's catalogue that no GPU of these models can have.
  void AnnounceIgnored(const std::vector<cluster::Gpu>& gpus,
                       const std::vector<gpu::IgnoredGeometry>& ignored, kube::Client& client,
                       Time now);
  // An Event if the devices cannot be offered until an administrator acts, as it also seems if
  // kUnavailable lasts for longer than `patience`.
  void AnnounceOffer(const Status& offered, std::optional<Duration> patience, kube::Client& client,
                     Time now);
  void AnnounceFailure(const device::Operation& operation, const Status& error,
                       kube::Client& client, Time now);

  // Sets the gauges of instances and health conditions.
  void Measure(const NodeDevices& devices) const;

 private:
  void Record(const kube::EventNote& note, kube::Client& client, Time now);

  const std::string node_;
  const device::GpuHealth* const health_;
  Metrics* const metrics_;
  kube::EventRecorder events_{"nos-agent"};
  // The last contents of Events.
  std::string result_;
  std::vector<std::string> problems_;
  std::set<std::string> ignored_;
  std::vector<PodViolation> violations_;
  std::string offer_error_;
  std::optional<Time> unavailable_since_;  // of the offer
};

}  // namespace nos::agent
