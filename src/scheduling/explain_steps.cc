#include "scheduling/explain_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/selectors.h"
#include "cluster/volumes.h"
#include "scheduling/plugins/inter_pod_affinity/terms.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;
using cluster::PodAffinityTerm;
using cluster::Taint;

constexpr size_t kMostNamed = 3;

std::string Listed(const std::set<std::string>& names, std::string_view conjunction = " and ") {
  std::vector<std::string> named;
  for (const std::string& name : names) {
    if (named.size() == kMostNamed) break;
    named.push_back(name);
  }
  if (names.size() > kMostNamed) named.push_back(fmt::format("{} more", names.size() - kMostNamed));
  return Join(named, conjunction);
}

// The taints by which node controllers and kubelets tell of a node's state. Source: k8s.io/api
// core/v1 well_known_taints.go, k8s.io/cloud-provider/api.
struct NodeState {
  std::string_view taint, step;
  bool opens, out;  // out: nothing can be run there
};
constexpr std::array kNodeStates = {
    NodeState{"node.kubernetes.io/not-ready", "node {} is not ready: look at its kubelet", false,
              true},
    NodeState{"node.kubernetes.io/unreachable", "node {} is not ready: look at its kubelet", false,
              true},
    NodeState{"node.kubernetes.io/network-unavailable",
              "node {} has no network: look at its network plugin", false, true},
    NodeState{"node.kubernetes.io/out-of-service",
              "node {} is out of service: bring it back, and remove the taint", false, true},
    NodeState{"node.cloudprovider.kubernetes.io/uninitialized",
              "node {} is not initialised: look at the cloud controller manager", false, true},
    NodeState{"node.cloudprovider.kubernetes.io/shutdown", "node {} is shut down: start it", false,
              true},
    NodeState{"node.kubernetes.io/memory-pressure", "relieve node {}, which is short of memory",
              true, false},
    NodeState{"node.kubernetes.io/disk-pressure", "relieve node {}, which is short of disk space",
              true, false},
    NodeState{"node.kubernetes.io/pid-pressure", "relieve node {}, which is short of process ids",
              true, false},
    NodeState{"node.kubernetes.io/unschedulable", "uncordon node {}", true, false},
};

const NodeState* StateOf(const Taint& taint) {
  const auto found = std::ranges::find(kNodeStates, taint.key, &NodeState::taint);
  return found == kNodeStates.end() ? nullptr : &*found;
}

std::vector<Taint> KeepingAway(const cluster::Node& node, const Pod& pod) {
  std::vector<Taint> taints;
  std::ranges::copy_if(node.taints, std::back_inserter(taints), [&](const Taint& taint) {
    const bool strict = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    return strict && !cluster::Tolerates(pod.tolerations, taint);
  });
  return taints;
}

std::vector<Step> TaintSteps(const Pod& pod, const cluster::Node& node) {
  std::vector<Step> steps;
  std::set<std::string> others;
  for (const Taint& taint : KeepingAway(node, pod)) {
    if (const NodeState* state = StateOf(taint)) {
      const Step step{fmt::format(fmt::runtime(state->step), node.meta.name), state->opens};
      if (std::ranges::find(steps, step) == steps.end()) steps.push_back(step);
    } else {
      others.insert(fmt::format("{}{}{}:{}", taint.key, taint.value.empty() ? "" : "=", taint.value,
                                taint.effect));
    }
  }
  if (!others.empty()) {
    steps.push_back({fmt::format("tolerate or remove {} {} of node {}",
                                 others.size() == 1 ? "the taint" : "the taints", Listed(others),
                                 node.meta.name)});
  }
  return steps;
}

Step CutStep(const cluster::Node& node) {
  const std::string plan = cluster::SpecPlan(node);
  return {fmt::format("the agent of node {} has a plan to carry out{}; if that lasts, look at the "
                      "agent's pod there",
                      node.meta.name, plan.empty() ? "" : fmt::format(" (plan {})", plan)),
          false};
}

// "their end" of the pods that `is_meant` finds where the label `key` is as on the node.
template <typename IsMeant>
void AddNeighbours(const ClusterSnapshot& snapshot, const NodeInfo& node, const std::string& key,
                   IsMeant is_meant, std::set<std::string>& pods) {
  const auto value = node.node->meta.labels.find(key);
  if (value == node.node->meta.labels.end()) return;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& other = snapshot.node(i);
    const auto there = other.node->meta.labels.find(key);
    if (there == other.node->meta.labels.end() || there->second != value->second) continue;
    for (const auto& neighbour : other.pods) {
      if (is_meant(*neighbour)) pods.insert(neighbour->Key());
    }
  }
}

std::string AntiAffinityStep(const Pod& pod, const NodeInfo& node,
                             const ClusterSnapshot& snapshot) {
  std::set<std::string> pods, keys;
  for (const PodAffinityTerm& term : pod.pod_anti_affinity.required) {
    const TermMatcher matcher(term, pod, snapshot.around());
    const size_t before = pods.size();
    AddNeighbours(
        snapshot, node, term.topology_key, [&](const Pod& other) { return matcher.Matches(other); },
        pods);
    if (pods.size() > before) keys.insert(term.topology_key);
  }
  const std::string& name = node.node->meta.name;
  if (pods.empty()) return fmt::format("relax its anti-affinity, which rules out node {}", name);
  return fmt::format(
      "wait for the end of {}, with which its anti-affinity rules out the same {} (node {})",
      Listed(pods), Listed(keys), name);
}

std::string RepelledStep(const Pod& pod, const NodeInfo& node, const ClusterSnapshot& snapshot) {
  const cluster::StringMap& labels = NamespaceLabels(snapshot.around(), pod.meta.ns);
  std::set<std::string> pods, keys;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& other = snapshot.node(i);
    if (other.with_required_anti_affinity == 0) continue;
    for (const auto& neighbour : other.pods) {
      for (const PodAffinityTerm& term : neighbour->pod_anti_affinity.required) {
        const auto here = node.node->meta.labels.find(term.topology_key);
        const auto there = other.node->meta.labels.find(term.topology_key);
        const bool same = here != node.node->meta.labels.end() &&
                          there != other.node->meta.labels.end() && here->second == there->second;
        if (!same || !Selects(term, *neighbour, pod, labels)) continue;
        pods.insert(neighbour->Key());
        keys.insert(term.topology_key);
      }
    }
  }
  const std::string& name = node.node->meta.name;
  if (pods.empty()) return fmt::format("end the pods whose anti-affinity rules out node {}", name);
  return fmt::format(
      "wait for the end of {}, whose anti-affinity rules it out in the same {} "
      "(node {})",
      Listed(pods), Listed(keys), name);
}

std::string AffinityStep(const Pod& pod, const NodeInfo& node) {
  std::set<std::string> keys, unlabelled;
  for (const PodAffinityTerm& term : pod.pod_affinity.required) {
    keys.insert(term.topology_key);
    if (!node.node->meta.labels.contains(term.topology_key)) unlabelled.insert(term.topology_key);
  }
  const std::string& name = node.node->meta.name;
  if (!unlabelled.empty()) {
    return fmt::format("label node {} with {}, by which its affinity goes", name,
                       Listed(unlabelled));
  }
  return fmt::format("run what its pod affinity asks for in the same {} as node {}", Listed(keys),
                     name);
}

std::string NodeAffinityStep(const Pod& pod, const cluster::Node& node) {
  std::set<std::string> missing;
  for (const auto& [key, value] : pod.node_selector) {
    const auto label = node.meta.labels.find(key);
    if (label == node.meta.labels.end() || label->second != value) {
      missing.insert(fmt::format("{}={}", key, value));
    }
  }
  if (missing.empty()) {
    return fmt::format("label node {} as the pod's node affinity asks, or relax that",
                       node.meta.name);
  }
  return fmt::format("label node {} with {}, or have the pod not select that", node.meta.name,
                     Listed(missing));
}

std::set<std::string> SpreadKeys(const Pod& pod, const cluster::Node* without) {
  std::set<std::string> keys;
  for (const auto& constraint : pod.spread) {
    if (constraint.when_unsatisfiable != "DoNotSchedule") continue;
    if (without != nullptr && without->meta.labels.contains(constraint.topology_key)) continue;
    keys.insert(constraint.topology_key);
  }
  return keys;
}

std::string SpreadStep(const Pod& pod, const cluster::Node& node) {
  const std::set<std::string> keys = SpreadKeys(pod, nullptr);
  return fmt::format(
      "make room in another {} than that of node {}, or raise the maxSkew of its "
      "topology spread",
      keys.empty() ? "topology domain" : Listed(keys, " or "), node.meta.name);
}

std::string PortStep(const Pod& pod, const NodeInfo& node) {
  std::set<std::string> pods, ports;
  const cluster::HostPorts wanted = cluster::HostPortsOf(pod);
  for (const auto& other : node.pods) {
    const cluster::HostPorts held = cluster::HostPortsOf(*other);
    for (const cluster::HostPort& port : wanted) {
      if (!cluster::IsTaken(port, held)) continue;
      pods.insert(other->Key());
      ports.insert(fmt::format("{}/{}", port.port, port.protocol));
    }
  }
  return fmt::format("wait for the end of {} on node {}, which {} port {}", Listed(pods),
                     node.node->meta.name, pods.size() == 1 ? "has" : "have", Listed(ports));
}

// Pods beside it with a claim of its own.
std::string ExclusiveClaimStep(const Pod& pod, const ClusterSnapshot& snapshot) {
  std::set<std::string> claims, pods;
  for (const cluster::Volume& volume : pod.volumes) {
    if (volume.kind == cluster::Volume::Kind::kClaim) claims.insert(volume.source);
  }
  for (size_t i = 0; i < snapshot.size(); ++i) {
    for (const auto& other : snapshot.node(i).pods) {
      const bool shares =
          other->meta.ns == pod.meta.ns &&
          std::ranges::any_of(other->volumes, [&](const cluster::Volume& volume) {
            return volume.kind == cluster::Volume::Kind::kClaim && claims.contains(volume.source);
          });
      if (shares) pods.insert(other->Key());
    }
  }
  return fmt::format(
      "wait for the end of {}: its volume is for one pod at a time (ReadWriteOncePod)",
      pods.empty() ? "the pod that uses it" : Listed(pods));
}

// Volumes that its claims are bound to and that are not for this node, or not there at all.
std::set<std::string> BoundVolumes(const Pod& pod, const cluster::Node& node,
                                   const cluster::Surroundings& around, bool missing) {
  std::set<std::string> names;
  for (const cluster::Volume& volume : pod.volumes) {
    if (!cluster::IsClaim(volume)) continue;
    const auto* claim = around.claims.Find(pod.meta.ns + "/" + cluster::ClaimName(pod, volume));
    if (claim == nullptr || claim->volume_name.empty()) continue;
    const auto* bound = around.volumes.Find(claim->volume_name);
    const bool meant =
        bound == nullptr ? missing : !missing && !cluster::Reaches(node.meta.labels, *bound);
    if (meant) names.insert(claim->volume_name);
  }
  return names;
}

std::string UnboundStep(const Pod& pod, const cluster::Surroundings& around) {
  std::set<std::string> names;
  for (const cluster::Volume& volume : pod.volumes) {
    if (!cluster::IsClaim(volume)) continue;
    const std::string name = cluster::ClaimName(pod, volume);
    const auto* claim = around.claims.Find(pod.meta.ns + "/" + name);
    if (claim != nullptr && !cluster::IsBound(*claim)) names.insert(pod.meta.ns + "/" + name);
  }
  return names.empty() ? ""
                       : fmt::format(
                             "have PersistentVolumeClaim {} bound: its events say what it "
                             "waits for",
                             Listed(names));
}

std::string VolumeStep(const Reason& reason, const Pod& pod, const NodeInfo& node,
                       const ClusterSnapshot& snapshot) {
  const std::string& name = node.node->meta.name;
  const auto bound = [&](bool missing) {
    const auto names = BoundVolumes(pod, *node.node, snapshot.around(), missing);
    return names.empty() ? std::string("the volume") : "PersistentVolume " + Listed(names);
  };
  if (reason.code == "NoVolumeToBind") {
    return fmt::format("make a volume available to it that node {} can reach", name);
  }
  if (reason.code == "NotEnoughStorage") {
    return fmt::format("free storage of its class that node {} can reach", name);
  }
  if (reason.code == "VolumeOutOfReach") {
    return fmt::format("replace {}, which node {} cannot reach", bound(false), name);
  }
  if (reason.code == "VolumeNotFound") {
    return fmt::format("restore {}, to which its claim is bound, or replace the claim",
                       bound(true));
  }
  if (reason.code == "VolumeZoneConflict") {
    return fmt::format("replace its volume by one in the zone of node {}", name);
  }
  if (reason.code == "TooManyVolumes") {
    return fmt::format("detach volumes from node {}, which holds as many as it can", name);
  }
  if (reason.code == "DiskConflict") {
    return fmt::format("wait for the end of the pods that use its disk on node {}", name);
  }
  if (reason.code == "ReadWriteOncePodConflict") return ExclusiveClaimStep(pod, snapshot);
  return "";
}

std::string PlacementStep(const Reason& reason, const Pod& pod, const NodeInfo& node,
                          const ClusterSnapshot& snapshot) {
  const std::string& code = reason.code;
  const std::string& name = node.node->meta.name;
  if (code == "NodeUnschedulable") return "uncordon node " + name;
  if (code == "PodAffinityMismatch") return AffinityStep(pod, node);
  if (code == "PodAntiAffinity") return AntiAffinityStep(pod, node, snapshot);
  if (code == "ExistingPodsAntiAffinity") return RepelledStep(pod, node, snapshot);
  if (code == "NodeAffinityMismatch") return NodeAffinityStep(pod, *node.node);
  if (code == "AddedAffinityMismatch") {
    return fmt::format(
        "label node {} as addedAffinity in its scheduler's configuration asks, or "
        "change that",
        name);
  }
  if (code == "TopologySpread") return SpreadStep(pod, *node.node);
  if (code == "TopologyLabelMissing") {
    const std::set<std::string> keys = SpreadKeys(pod, node.node.get());
    return fmt::format("label node {} with {}, over which the pod is spread", name,
                       keys.empty() ? "the topology key" : Listed(keys));
  }
  if (code == "PortTaken") return PortStep(pod, node);
  return "";
}

}  // namespace

std::vector<Step> StepsFor(const Reason& reason, const Pod& pod, const NodeInfo& node,
                           const ClusterSnapshot& snapshot) {
  if (reason.code == "Tainted") return TaintSteps(pod, *node.node);
  if (reason.code == "GpusBeingCut") return {CutStep(*node.node)};
  std::string text = PlacementStep(reason, pod, node, snapshot);
  if (text.empty()) text = VolumeStep(reason, pod, node, snapshot);
  if (text.empty()) text = StepForAll(reason, pod, snapshot);
  if (!text.empty()) return {{text}};
  return {
      {fmt::format("change what keeps it from node {}: {}", node.node->meta.name, reason.message)}};
}

std::string StepForAll(const Reason& reason, const Pod& pod, const ClusterSnapshot& snapshot) {
  const std::string& code = reason.code;
  if (code == "ClaimUnbound") return UnboundStep(pod, snapshot.around());
  if (code == "ClaimNotFound") return "create its PersistentVolumeClaim: " + reason.message;
  if (code == "ClaimLost" || code == "ClaimDeleted" || code == "ClaimOfAnother") {
    return "replace its PersistentVolumeClaim: " + reason.message;
  }
  if (code == "StorageClassNotFound") {
    return "create the StorageClass of its claim, or name another: " + reason.message;
  }
  if (code == "ResourceClaims") {
    return "leave the pod to a scheduler that allocates resource claims: set spec.schedulerName: "
           "default-scheduler";
  }
  if (code == "NodeAffinityMismatch") return "correct its node affinity: " + reason.message;
  return "";
}

bool IsOut(const cluster::Node& node, const Pod& pod) {
  return std::ranges::any_of(KeepingAway(node, pod), [](const Taint& taint) {
    const NodeState* state = StateOf(taint);
    return state != nullptr && state->out;
  });
}

}  // namespace nos::scheduling
