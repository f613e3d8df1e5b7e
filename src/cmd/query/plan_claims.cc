#include "cmd/query/plan_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/table.h"
#include "cluster/gangs.h"
#include "cmd/daemon/scheduler_file.h"
#include "cmd/telemetry/explainer.h"
#include "dra/cel_expressions.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "dra/gpu_driver.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"
#include "scheduling/pod_state.h"

namespace nos::cmd {
namespace {

constexpr int kMaxExplained = 20;

struct WaitingPod {
  SharedPod pod;
  bool left = false;  // by the plan: only nodes that serve the pod by a claim count
};

std::vector<WaitingPod> WaitingPods(const ClusterObjects& input, const planning::Plan& plan) {
  std::vector<WaitingPod> pods;
  for (const SharedPod& pod : input.pods) {
    if (pod->HasClaims() && scheduling::IsSchedulable(*pod)) pods.push_back({pod, false});
  }
  if (input.context) {
    const dra::ExtendedResources served(input.context->device_classes);
    for (const planning::PodOutcome& outcome : plan.pods) {
      if (outcome.placed || served.ServedFor(*outcome.pod).empty()) continue;
      if (!cluster::GangOf(*outcome.pod).empty()) continue;
      pods.push_back({outcome.pod, true});
    }
  }
  std::ranges::sort(pods, {}, [](const WaitingPod& waiting) {
    const cluster::Pod& pod = *waiting.pod;
    return std::tuple(-int64_t{pod.priority}, pod.meta.created, pod.Key());
  });
  return pods;
}

// The objects as they are once the plan is carried out.
ClusterObjects WithPlaced(ClusterObjects objects, const planning::Plan& plan) {
  std::map<std::string, std::string> nodes;  // by pod key
  for (const planning::PodOutcome& outcome : plan.pods) {
    if (outcome.placed) nodes.emplace(outcome.pod->Key(), outcome.node);
  }
  for (SharedPod& pod : objects.pods) {
    const auto node = nodes.find(pod->Key());
    if (node == nodes.end() || !pod->node_name.empty()) continue;
    auto bound = std::make_shared<cluster::Pod>(*pod);
    bound->node_name = node->second;
    pod = std::move(bound);
  }
  return objects;
}

// Kube-scheduler's plugins, as others run them. Which of several devices it takes may differ.
scheduling::Configuration WithoutOwnPlugins(const scheduling::ConfigurationUse& use) {
  JsonArray own;
  for (const char* plugin : {"CapacityScheduling", "GpuPacking", "GpuPartitioning"}) {
    own.push_back(JsonObject{{"name", plugin}});
  }
  const JsonObject points = {{"multiPoint", JsonObject{{"disabled", std::move(own)}}}};
  const Json file = {{"apiVersion", "kubescheduler.config.k8s.io/v1"},
                     {"kind", "KubeSchedulerConfiguration"},
                     {"profiles", JsonArray{JsonObject{{"schedulerName", "default-scheduler"},
                                                       {"plugins", points}}}}};
  return scheduling::ReadConfiguration(file, use).value();
}

// Schedules pods in a copy of the cluster, which it changes as if they had been bound.
class Placement {
 public:
  Placement(ClusterObjects objects, const gpu::Catalogue& catalogue,
            const std::function<bool()>& out_of_time)
      : objects_(std::move(objects)),
        catalogue_(catalogue),
        out_of_time_(out_of_time),
        engine_(catalogue),
        index_(std::make_shared<dra::DeviceIndex>(
            dra::Features::All(), std::make_shared<const dra::CelExpressions>(), catalogue)) {
    if (!objects_.context) objects_.context.emplace();
    // All profiles of nos charge alike, and kube-scheduler knows no quotas.
    FillIn(engine_, objects_, DecidersOf(std::string(kOurScheduler)).of_pod(), {});
    engine_.FollowDevices(index_);
  }

  // Absent: no node serves the pod by a claim.
  std::optional<ClaimedPod> PlaceByClaim(const SharedPod& pod) {
    std::vector<size_t> among;
    const cluster::ClusterSnapshot& snapshot = engine_.snapshot();
    for (size_t i = 0; i < snapshot.size(); ++i) {
      if (index_->extended().ClaimFor(*pod, snapshot.node(i)).claim != nullptr) among.push_back(i);
    }
    if (among.empty()) return std::nullopt;
    const scheduling::Framework& framework = *DecidersOf(pod->scheduler_name).of_pod().framework;
    const scheduling::Decision decision = engine_.Schedule(framework, pod, among);
    if (decision.node == nullptr) return std::nullopt;
    ClaimedPod placed = Bind(pod, framework, decision.node->node->meta.name);
    return placed.node.empty() ? std::nullopt : std::optional(std::move(placed));
  }

  ClaimedPod Place(const SharedPod& pod) {
    const Deciders& deciders = DecidersOf(pod->scheduler_name);
    const scheduling::Framework& framework = *deciders.of_pod().framework;
    for (const scheduling::PreEnqueuePlugin* gate : framework.gates()) {
      const scheduling::Verdict verdict = gate->PreEnqueue(*pod);
      if (!verdict.fits()) return Refused(pod, deciders, {{verdict.code, verdict.message}});
    }
    const scheduling::Decision decision = engine_.Schedule(framework, pod);
    if (decision.node == nullptr) return Refused(pod, deciders, ReasonsOf(decision.diagnosis));
    ClaimedPod placed = Bind(pod, framework, decision.node->node->meta.name);
    return placed.node.empty() ? Refused(pod, deciders, std::move(placed.reasons)) : placed;
  }

 private:
  using Reasons = std::vector<scheduling::Reason>;

  // With reasons instead of the node if a plugin refuses the pod after all.
  ClaimedPod Bind(const SharedPod& pod, const scheduling::Framework& framework,
                  const std::string& node) {
    engine_.Assume(pod, node);
    scheduling::CycleState state;
    const scheduling::Verdict reserved = engine_.Reserve(framework, *pod, node, state);
    if (!reserved.fits()) {
      engine_.Forget(pod->Key());
      return {pod, "", {}, {{reserved.code, reserved.message}}, "", ""};
    }
    ClaimedPod placed{pod, node, DevicesOf(*pod), {}, "", ""};
    Record(pod, node);
    return placed;
  }

  const Deciders& DecidersOf(const std::string& scheduler) {
    std::unique_ptr<const Deciders>& known = deciders_[scheduler];
    if (known != nullptr) return *known;
    scheduling::ConfigurationUse use{.default_name = kOurScheduler};
    if (scheduler == kOurScheduler) {
      use.partitioned_by = scheduling::PartitionedBy::kScheduler;
    }
    scheduling::Configuration configuration =
        scheduler == kOurScheduler ? scheduling::DefaultConfiguration(use) : WithoutOwnPlugins(use);
    configuration.profiles.front().scheduler_name = scheduler;
    known = std::make_unique<const Deciders>(std::move(configuration), scheduler,
                                             /*what_if=*/false);
    return *known;
  }

  // Returns the devices that the index assumes for the pod's claims, or that they are allocated.
  std::vector<ClaimedPod::Device> DevicesOf(const cluster::Pod& pod) const {
    std::vector<ClaimedPod::Device> devices;
    std::vector<std::string> keys = dra::ClaimKeysOf(pod);
    keys.push_back(dra::ExtendedClaimKey(pod));
    for (const std::string& key : keys) {
      for (const dra::AllocatedDevice& device : AllocationOf(key).devices) {
        devices.push_back({device.driver.str(), device.pool.str(), device.device.str()});
      }
    }
    return devices;
  }

  dra::Allocation AllocationOf(const std::string& claim) const {
    if (const auto* assumed = index_->FindAssumed(claim)) return assumed->allocation;
    const dra::DeviceIndex::Claim& stored = index_->FindClaim(claim);
    return stored == nullptr ? dra::Allocation() : stored->allocation.value_or(dra::Allocation());
  }

  // Stores the binding and the allocations, as the API server would: pods placed later may use the
  // same claims, and explanations name them.
  void Record(const SharedPod& pod, const std::string& node) {
    auto bound = std::make_shared<cluster::Pod>(*pod);
    bound->node_name = node;
    std::ranges::replace(objects_.pods, pod, SharedPod(bound));
    if (!objects_.context) return;  // never: the constructor sets it
    for (const std::string& key : dra::ClaimKeysOf(*pod)) {
      const dra::ResourceClaim* stored = objects_.context->device_claims.Find(key);
      if (stored == nullptr) continue;
      const auto claim = std::make_shared<dra::ResourceClaim>(*stored);
      claim->allocation = AllocationOf(key);
      claim->reserved_for.push_back({"", "pods", pod->meta.name, pod->meta.uid});
      objects_.context->device_claims.Set(key, claim);
      engine_.ChangeContext(
          [&](cluster::ClusterContext& context) { context.device_claims.Set(key, claim); },
          dra::kClaimKind, key);
    }
  }

  static Reasons ReasonsOf(const scheduling::Diagnosis& diagnosis) {
    Reasons reasons;
    for (const scheduling::Diagnosis::Entry& entry : diagnosis.entries) {
      reasons.push_back({entry.code, entry.message, entry.nodes});
    }
    return reasons;
  }

  // An explanation costs much more than a decision, so only the first pods get a remedy.
  ClaimedPod Refused(const SharedPod& pod, const Deciders& deciders, Reasons reasons) {
    ClaimedPod refused{pod, "", {}, std::move(reasons), "", ""};
    if (++explained_ > kMaxExplained || out_of_time_()) return refused;
    const scheduling::Explanation why = ExplainWaiting(objects_, pod, deciders, catalogue_);
    refused.remedy_code = why.remedy_code;
    refused.remedy = why.remedy;
    if (!why.quota.empty()) {
      refused.reasons.insert(refused.reasons.begin(), {scheduling::codes::kQuota, why.quota});
    }
    return refused;
  }

  ClusterObjects objects_;
  const gpu::Catalogue& catalogue_;
  const std::function<bool()>& out_of_time_;
  int explained_ = 0;
  std::map<std::string, std::unique_ptr<const Deciders>> deciders_;  // by name of the scheduler
  scheduling::Engine engine_;
  std::shared_ptr<dra::DeviceIndex> index_;
};

// The driver is named where it is not one of GPUs; the pool where it is not the node.
std::string TextOf(const ClaimedPod& pod) {
  std::string text;
  for (const ClaimedPod::Device& device : pod.devices) {
    text += text.empty() ? "" : ", ";
    text += device.pool == pod.node ? "" : device.pool + "/";
    text += device.device;
    if (!dra::IsGpuDriver(device.driver)) text += fmt::format(" ({})", device.driver);
  }
  return text;
}

}  // namespace

std::vector<ClaimedPod> PlaceClaims(const ClusterObjects& input, const gpu::Catalogue& catalogue,
                                    const std::function<bool()>& out_of_time,
                                    planning::Plan& plan) {
  const std::vector<WaitingPod> waiting = WaitingPods(input, plan);
  std::vector<ClaimedPod> pods;
  if (waiting.empty()) return pods;
  Placement placement(WithPlaced(input, plan), catalogue, out_of_time);
  for (const auto& [pod, left] : waiting) {
    if (out_of_time()) {
      if (left) continue;
      pods.push_back(
          {pod, "", {}, {{scheduling::codes::kNotLookedAt, "not tried: the time is up"}}, "", ""});
    } else if (!left) {
      pods.push_back(placement.Place(pod));
    } else if (auto placed = placement.PlaceByClaim(pod)) {
      pods.push_back(*std::move(placed));
      std::erase_if(plan.pods, [&](const planning::PodOutcome& outcome) {
        return outcome.pod->Key() == pods.back().pod->Key();
      });
    }
  }
  return pods;
}

JsonArray ClaimsToJson(const std::vector<ClaimedPod>& pods) {
  JsonArray json;
  for (const ClaimedPod& pod : pods) {
    JsonArray devices, reasons;
    for (const ClaimedPod::Device& device : pod.devices) {
      devices.push_back(
          {{"driver", device.driver}, {"pool", device.pool}, {"device", device.device}});
    }
    for (const scheduling::Reason& reason : pod.reasons) {
      reasons.push_back(
          {{"code", reason.code}, {"message", reason.message}, {"nodes", reason.nodes}});
    }
    json.push_back({{"namespace", pod.pod->meta.ns},
                    {"name", pod.pod->meta.name},
                    {"outcome", pod.node.empty() ? "pending" : "placed"},
                    {"node", pod.node},
                    {"devices", std::move(devices)},
                    {"reasons", std::move(reasons)},
                    {"remedy", pod.remedy},
                    {"remedyCode", pod.remedy_code}});
  }
  return json;
}

std::string ClaimsToText(const std::vector<ClaimedPod>& pods, size_t width) {
  if (pods.empty()) return "";
  TextTable placed({"POD WITH CLAIMS", "NODE", "DEVICES"});
  TextTable waiting({"WAITING POD WITH CLAIMS", "WHY"});
  std::string remedies;
  size_t running = 0;
  for (const ClaimedPod& pod : pods) {
    if (!pod.node.empty()) {
      ++running;
      placed.AddRow({pod.pod->Key(), pod.node, TextOf(pod)});
      continue;
    }
    std::string why;
    for (const scheduling::Reason& reason : pod.reasons) {
      why += (why.empty() ? "" : "; ") + reason.message;
    }
    waiting.AddRow({pod.pod->Key(), why});
    if (pod.remedy.empty()) continue;
    remedies += fmt::format("  {}\n", Printable(pod.pod->Key() + ": " + pod.remedy));
  }
  std::string text =
      fmt::format("\n{} of {} pending pods with ResourceClaims can run\n", running, pods.size());
  if (!placed.empty()) text += "\n" + placed.ToString(width);
  if (!waiting.empty()) text += "\n" + waiting.ToString(width);
  if (!remedies.empty()) text += "\nwhat would help:\n" + remedies;
  return text;
}

}  // namespace nos::cmd
