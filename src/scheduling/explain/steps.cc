#include "scheduling/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "cluster/annotations.h"
#include "cluster/selectors.h"
#include "scheduling/explain/volume_steps.h"
#include "scheduling/plugins/inter_pod_affinity/terms.h"
#include "scheduling/pod_names.h"
#include "scheduling/pod_state.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;
using cluster::PodAffinityTerm;
using cluster::Taint;

// The node lifecycle controller adds this taint to cordoned nodes and removes it on uncordon
// (kubernetes.io/docs/reference/labels-annotations-taints).
constexpr std::string_view kCordonTaint = "node.kubernetes.io/unschedulable";

std::string Listed(const std::set<std::string>& names, std::string_view conjunction = " and ") {
  return NamesOf({names.begin(), names.end()}, "", conjunction);
}

// Taints with which node controllers and kubelets report the state of a node. Source: k8s.io/api
// core/v1 well_known_taints.go, k8s.io/cloud-provider/api.
struct NodeState {
  std::string_view taint, step;
  bool opens, out;  // out: the node cannot run pods
};
constexpr std::array kNodeStates = {
    NodeState{"node.kubernetes.io/not-ready", "node {} is not ready: inspect its kubelet", false,
              true},
    NodeState{"node.kubernetes.io/unreachable", "node {} is not ready: inspect its kubelet", false,
              true},
    NodeState{"node.kubernetes.io/network-unavailable",
              "node {} has no network: inspect its network plugin", false, true},
    NodeState{"node.kubernetes.io/out-of-service",
              "node {} is out of service: bring it back, and remove the taint", false, true},
    NodeState{"node.cloudprovider.kubernetes.io/uninitialized",
              "node {} is not initialised: inspect the cloud controller manager", false, true},
    NodeState{"node.cloudprovider.kubernetes.io/shutdown", "node {} is shut down: start it", false,
              true},
    NodeState{"node.kubernetes.io/memory-pressure", "relieve node {}, which is short of memory",
              true, false},
    NodeState{"node.kubernetes.io/disk-pressure", "relieve node {}, which is short of disk space",
              true, false},
    NodeState{"node.kubernetes.io/pid-pressure", "relieve node {}, which is short of process ids",
              true, false},
    NodeState{kCordonTaint, "uncordon node {}", true, false},
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

// Replaces the scene's node by a changed copy.
template <typename Change>
void ChangeNode(Scene& scene, Change change) {
  auto node = std::make_shared<cluster::Node>(*scene.snapshot.Find(scene.node)->node);
  change(*node);
  scene.snapshot.SetNode(std::move(node));
}

auto Removing(std::vector<Taint> taints) {
  return [taints = std::move(taints)](Scene& scene) {
    ChangeNode(scene, [&](cluster::Node& node) {
      std::erase_if(node.taints, [&](const Taint& taint) {
        return std::ranges::any_of(taints, [&](const Taint& gone) {
          return gone.key == taint.key && gone.value == taint.value && gone.effect == taint.effect;
        });
      });
    });
  };
}

Step Uncordon(const cluster::Node& node) {
  return {"uncordon node " + node.meta.name, true, [](Scene& scene) {
            ChangeNode(scene, [](cluster::Node& changed) {
              changed.unschedulable = false;
              std::erase_if(changed.taints,
                            [](const Taint& taint) { return taint.key == kCordonTaint; });
            });
          }};
}

auto Labelling(cluster::StringMap labels) {
  return [labels = std::move(labels)](Scene& scene) {
    ChangeNode(scene, [&](cluster::Node& node) {
      for (const auto& [key, value] : labels) node.meta.labels[key] = value;
    });
  };
}

// Pod key to node name and pod.
using Neighbours = std::map<std::string, std::pair<std::string, std::shared_ptr<const Pod>>>;

std::vector<std::string> KeysOf(const Neighbours& pods) {
  std::vector<std::string> keys;
  for (const auto& [key, pod] : pods) keys.push_back(key);
  return keys;
}

// True if no owner restarts one of the pods on its node.
bool End(const Neighbours& pods) {
  return std::ranges::none_of(pods,
                              [](const auto& entry) { return IsTiedToNode(*entry.second.second); });
}

auto Ending(Neighbours pods) {
  return [pods = std::move(pods)](Scene& scene) {
    for (const auto& [key, there] : pods) (void)scene.snapshot.Vacate(*there.second, there.first);
  };
}

Step StateStep(const NodeState& state, const Taint& taint, const cluster::Node& node) {
  if (taint.key == kCordonTaint) return Uncordon(node);
  return {fmt::format(fmt::runtime(state.step), node.meta.name), state.opens, Removing({taint})};
}

std::vector<Step> TaintSteps(const Scene& scene, const cluster::Node& node) {
  std::vector<Step> steps;
  std::vector<Taint> others;
  std::set<std::string> named;
  for (const Taint& taint : KeepingAway(node, scene.pod)) {
    if (const NodeState* state = StateOf(taint)) {
      steps.push_back(StateStep(*state, taint, node));
      continue;
    }
    others.push_back(taint);
    named.insert(fmt::format("{}{}{}:{}", taint.key, taint.value.empty() ? "" : "=", taint.value,
                             taint.effect));
  }
  if (others.empty()) return steps;
  steps.push_back(
      {fmt::format("tolerate or remove {} {} of node {}",
                   named.size() == 1 ? "the taint" : "the taints", Listed(named), node.meta.name),
       true, Removing(std::move(others))});
  return steps;
}

Step PlanStep(const cluster::Node& node) {
  const std::string plan = cluster::SpecPlan(node);
  return {
      fmt::format("wait until the agent of node {0} has carried out its plan{1}; if that lasts, "
                  "inspect the agent's pod on node {0}",
                  node.meta.name, plan.empty() ? "" : fmt::format(" (plan {})", plan)),
      false};
}

bool InSameDomain(const cluster::Node& a, const cluster::Node& b, const std::string& key) {
  const auto here = a.meta.labels.find(key), there = b.meta.labels.find(key);
  return here != a.meta.labels.end() && there != b.meta.labels.end() &&
         here->second == there->second;
}

// Adds pods that `is_meant` selects on nodes with the same value of label `key` as the node.
template <typename IsMeant>
void AddNeighbours(const ClusterSnapshot& snapshot, const NodeInfo& node, const std::string& key,
                   IsMeant is_meant, Neighbours& pods) {
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& other = snapshot.node(i);
    if (!InSameDomain(*node.node, *other.node, key)) continue;
    for (const auto& neighbour : other.pods) {
      if (is_meant(*neighbour)) pods[neighbour->Key()] = {other.node->meta.name, neighbour};
    }
  }
}

Step AntiAffinityStep(const Scene& scene, const NodeInfo& node) {
  Neighbours pods;
  std::set<std::string> keys;
  for (const PodAffinityTerm& term : scene.pod.pod_anti_affinity.required) {
    const TermMatcher matcher(term, scene.pod, scene.snapshot.context());
    const size_t before = pods.size();
    AddNeighbours(
        scene.snapshot, node, term.topology_key,
        [&](const Pod& other) { return matcher.Matches(other); }, pods);
    if (pods.size() > before) keys.insert(term.topology_key);
  }
  if (pods.empty()) {
    return {fmt::format("relax its anti-affinity, which rules out node {}", scene.node), true,
            [](Scene& relaxed) { relaxed.pod.pod_anti_affinity.required.clear(); }};
  }
  return {fmt::format(
              "wait for the end of {}, with which its anti-affinity rules out the same {} (node "
              "{})",
              PodsText(KeysOf(pods), scene.reader, " and "), Listed(keys), scene.node),
          End(pods), Ending(pods)};
}

Step RepelledStep(const Scene& scene, const NodeInfo& node) {
  const cluster::StringMap& labels = NamespaceLabels(scene.snapshot.context(), scene.pod.meta.ns);
  Neighbours pods;
  std::set<std::string> keys;
  for (size_t i = 0; i < scene.snapshot.size(); ++i) {
    const NodeInfo& other = scene.snapshot.node(i);
    if (other.with_required_anti_affinity == 0) continue;
    for (const auto& neighbour : other.pods) {
      for (const PodAffinityTerm& term : neighbour->pod_anti_affinity.required) {
        const bool same = InSameDomain(*node.node, *other.node, term.topology_key);
        if (!same || !Selects(term, *neighbour, scene.pod, labels)) continue;
        pods[neighbour->Key()] = {other.node->meta.name, neighbour};
        keys.insert(term.topology_key);
      }
    }
  }
  if (pods.empty()) {
    return {fmt::format("end the pods whose anti-affinity rules out node {}", scene.node)};
  }
  return {fmt::format("wait for the end of {}, whose anti-affinity rules it out in the same {} "
                      "(node {})",
                      PodsText(KeysOf(pods), scene.reader, " and "), Listed(keys), scene.node),
          End(pods), Ending(pods)};
}

// Value of label `key` on a node with a pod that matches all affinity terms; "": there is none.
std::string DomainOfAffinity(const Scene& scene, const std::string& key) {
  for (size_t i = 0; i < scene.snapshot.size(); ++i) {
    const NodeInfo& other = scene.snapshot.node(i);
    const auto value = other.node->meta.labels.find(key);
    const bool meant = value != other.node->meta.labels.end() &&
                       std::ranges::any_of(other.pods, [&](const auto& there) {
                         return IsAttractedBy(scene.pod, *there, scene.snapshot.context());
                       });
    if (meant) return value->second;
  }
  return "";
}

Step AffinityStep(const Scene& scene, const NodeInfo& node) {
  std::set<std::string> keys, unlabelled;
  cluster::StringMap labels;
  for (const PodAffinityTerm& term : scene.pod.pod_affinity.required) {
    const std::string& key = term.topology_key;
    keys.insert(key);
    if (node.node->meta.labels.contains(key)) continue;
    const std::string domain = DomainOfAffinity(scene, key);
    unlabelled.insert(domain.empty() ? key : fmt::format("{}={}", key, domain));
    labels[key] = domain.empty() ? scene.node : domain;
  }
  if (!unlabelled.empty()) {
    return {fmt::format("label node {} with {}, which its pod affinity requires", scene.node,
                        Listed(unlabelled)),
            true, Labelling(std::move(labels))};
  }
  return {fmt::format("run a pod that its pod affinity requires in the same {} as node {}",
                      Listed(keys), scene.node),
          true, [](Scene& there) { there.pod.pod_affinity.required.clear(); }};
}

// Labels with which the node would match the term. Absent: labels alone are not enough.
std::optional<cluster::StringMap> LabelsFor(const cluster::NodeSelectorTerm& term,
                                            const cluster::Node& node) {
  cluster::Node labelled = node;
  cluster::StringMap labels;
  for (const cluster::SelectorRequirement& asked : term.match_expressions) {
    if (cluster::Matches(asked, labelled.meta.labels)) continue;
    if (asked.op == "In" && !asked.values.empty()) labels[asked.key] = asked.values.front();
    if (asked.op == "Exists") labels[asked.key] = "";
    if (labels.contains(asked.key)) labelled.meta.labels[asked.key] = labels[asked.key];
  }
  return cluster::Matches(term, labelled) ? std::optional(labels) : std::nullopt;
}

std::set<std::string> Named(const cluster::StringMap& labels) {
  std::set<std::string> names;
  for (const auto& [key, value] : labels) names.insert(fmt::format("{}={}", key, value));
  return names;
}

// The smallest set of labels that satisfies one of the alternative terms.
Step RequiredAffinityStep(const Scene& scene, const cluster::Node& node) {
  std::optional<cluster::StringMap> fewest;
  if (scene.pod.node_affinity && scene.pod.node_affinity->required) {
    for (const cluster::NodeSelectorTerm& term : *scene.pod.node_affinity->required) {
      auto labels = LabelsFor(term, node);
      if (labels && (!fewest || labels->size() < fewest->size())) fewest = std::move(labels);
    }
  }
  if (!fewest) {
    return {fmt::format("relax its node affinity, which rules out node {}", scene.node), true,
            [](Scene& relaxed) { relaxed.pod.node_affinity = {}; }};
  }
  return {fmt::format("label node {} with {}, which its node affinity requires, or relax that",
                      scene.node, Listed(Named(*fewest))),
          true, Labelling(*std::move(fewest))};
}

constexpr const char* kHostname = "kubernetes.io/hostname";

Step NodeAffinityStep(const Scene& scene, const cluster::Node& node) {
  cluster::StringMap labels;
  for (const auto& [key, value] : scene.pod.node_selector) {
    const auto label = node.meta.labels.find(key);
    if (label != node.meta.labels.end() && label->second == value) continue;
    labels[key] = value;
  }
  if (labels.empty()) return RequiredAffinityStep(scene, node);
  if (labels.contains(kHostname)) {  // identifies a node
    return {fmt::format("remove {} from its node selector, which rules out node {}",
                        Listed(Named(labels)), node.meta.name),
            true, [](Scene& relaxed) { relaxed.pod.node_selector.clear(); }};
  }
  return {fmt::format("label node {} with {}, or remove that from its node selector",
                      node.meta.name, Listed(Named(labels))),
          true, Labelling(std::move(labels))};
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

Step PortStep(const Scene& scene, const NodeInfo& node) {
  Neighbours pods;
  std::set<std::string> ports;
  const cluster::HostPorts wanted = cluster::HostPortsOf(scene.pod);
  for (const auto& other : node.pods) {
    const cluster::HostPorts held = cluster::HostPortsOf(*other);
    for (const cluster::HostPort& port : wanted) {
      if (!cluster::IsTaken(port, held)) continue;
      pods[other->Key()] = {scene.node, other};
      ports.insert(fmt::format("{}/{}", port.port, port.protocol));
    }
  }
  return {fmt::format("wait for the end of {} on node {}, which {} port {}",
                      PodsText(KeysOf(pods), scene.reader, " and "), scene.node,
                      pods.size() == 1 ? "has" : "have", Listed(ports)),
          End(pods), Ending(pods)};
}

Step TopologyLabelStep(const Scene& scene, const cluster::Node& node) {
  const std::set<std::string> keys = SpreadKeys(scene.pod, &node);
  cluster::StringMap labels;
  for (const std::string& key : keys) labels[key] = scene.node;
  return {fmt::format("label node {} with {}, which its topology spread requires", scene.node,
                      keys.empty() ? "the topology key" : Listed(keys)),
          true, Labelling(std::move(labels))};
}

// An empty text: the reason is not about placement.
Step PlacementStep(const Reason& reason, const Scene& scene, const NodeInfo& node) {
  const std::string& code = reason.code;
  if (code == codes::kNodeUnschedulable) return Uncordon(*node.node);
  if (code == codes::kPodAffinityMismatch) return AffinityStep(scene, node);
  if (code == codes::kPodAntiAffinity) return AntiAffinityStep(scene, node);
  if (code == codes::kExistingPodsAntiAffinity) return RepelledStep(scene, node);
  if (code == codes::kNodeAffinityMismatch) return NodeAffinityStep(scene, *node.node);
  if (code == codes::kAddedAffinityMismatch) {
    return {
        fmt::format("label node {} as addedAffinity in its scheduler's configuration asks, or "
                    "change that",
                    scene.node)};
  }
  if (code == codes::kTopologySpread) return {SpreadStep(scene.pod, *node.node)};
  if (code == codes::kTopologyLabelMissing) return TopologyLabelStep(scene, *node.node);
  if (code == codes::kPortTaken) return PortStep(scene, node);
  return {};
}

}  // namespace

std::vector<Step> StepsFor(const Reason& reason, const Scene& scene) {
  const NodeInfo& node = *scene.snapshot.Find(scene.node);
  if (reason.code == codes::kTainted) return TaintSteps(scene, *node.node);
  if (reason.code == codes::kGpusBeingPartitioned) return {PlanStep(*node.node)};
  if (Step step = PlacementStep(reason, scene, node); !step.text.empty()) return {step};
  std::string text = VolumeStep(reason, scene.pod, node, scene.snapshot);
  if (text.empty()) text = StepForAll(reason, scene.pod, scene.snapshot);
  if (!text.empty()) return {{text}};
  return {
      {fmt::format("change what excludes it from node {}: {}", scene.node, reason.message), false}};
}

std::string StepForAll(const Reason& reason, const Pod& pod, const ClusterSnapshot& snapshot) {
  const std::string& code = reason.code;
  if (code == codes::kClaimUnbound) return UnboundStep(pod, snapshot.context());
  if (code == codes::kClaimNotFound) return "create its PersistentVolumeClaim: " + reason.message;
  if (code == codes::kClaimLost || code == codes::kClaimDeleted || code == codes::kClaimOfAnother) {
    return "replace its PersistentVolumeClaim: " + reason.message;
  }
  if (code == codes::kStorageClassNotFound) {
    return "create the StorageClass of its claim, or name another: " + reason.message;
  }
  if (code == codes::kResourceClaimNotFound) return "create it: " + reason.message;
  if (code == codes::kResourceClaimNotCreated) {
    return "create the ResourceClaimTemplate, if it does not exist: " + reason.message;
  }
  if (code == codes::kInsufficientDevices) {
    return "wait for devices that its ResourceClaims select, add a node that has such devices, or "
           "change what the claims request";
  }
  if (code == codes::kDevicesRefused) return "correct its ResourceClaim: " + reason.message;
  if (code == codes::kDevicesFailed) {
    return "wait for other devices; if that lasts, inspect the driver: " + reason.message;
  }
  if (code == codes::kResourceClaimInUse || code == codes::kResourceClaimDeleted) {
    return "wait until the claim is free, or name another one: " + reason.message;
  }
  if (code == codes::kResourceClaimOfAnother) {
    return "delete the pod, so that its successor gets a claim of its own: " + reason.message;
  }
  if (code == codes::kNodeAffinityMismatch) return "correct its node affinity: " + reason.message;
  return "";
}

bool IsOut(const cluster::Node& node, const Pod& pod) {
  return std::ranges::any_of(KeepingAway(node, pod), [](const Taint& taint) {
    const NodeState* state = StateOf(taint);
    return state != nullptr && state->out;
  });
}

}  // namespace nos::scheduling
