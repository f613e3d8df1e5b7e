// pkg/controller/daemon: one pod on each node that the template selects and tolerates.
#include <fmt/format.h>

#include <algorithm>

#include "cluster/read_parts.h"
#include "cluster/selectors.h"
#include "sim/world/manager/parts.h"

namespace nos::sim {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTolerated[] = {
    {"node.kubernetes.io/not-ready", "NoExecute"},
    {"node.kubernetes.io/unreachable", "NoExecute"},
    {"node.kubernetes.io/disk-pressure", "NoSchedule"},
    {"node.kubernetes.io/memory-pressure", "NoSchedule"},
    {"node.kubernetes.io/pid-pressure", "NoSchedule"},
    {"node.kubernetes.io/unschedulable", "NoSchedule"}};

// The node that the pod is bound to, or made for.
std::string NodeOf(const cluster::Pod& pod) {
  if (!pod.node_name.empty() || !pod.node_affinity || !pod.node_affinity->required) {
    return pod.node_name;
  }
  for (const cluster::NodeSelectorTerm& term : *pod.node_affinity->required) {
    for (const cluster::SelectorRequirement& field : term.match_fields) {
      if (field.key == "metadata.name" && field.values.size() == 1) return field.values[0];
    }
  }
  return "";
}

// A pod with this affinity fits this node only.
void PinTo(const std::string& node, JsonObject& spec) {
  Json affinity = spec.contains("affinity") ? spec["affinity"] : Json(JsonObject());
  JsonObject& required =
      MakeObject(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
  const JsonArray fields{
      JsonObject{{"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{Json(node)}}}};
  JsonArray terms = ArrayAt(required.if_contains("nodeSelectorTerms"));
  if (terms.empty()) terms.push_back(JsonObject());
  for (Json& term : terms) term.get_object()["matchFields"] = fields;
  required["nodeSelectorTerms"] = std::move(terms);
  spec["affinity"] = std::move(affinity);
}

void Tolerate(JsonObject& spec) {
  JsonArray tolerations = ArrayAt(spec.if_contains("tolerations"));
  for (const auto& [key, effect] : kTolerated) {
    tolerations.push_back(JsonObject{{"key", key}, {"operator", "Exists"}, {"effect", effect}});
  }
  spec["tolerations"] = std::move(tolerations);
}

class Daemons {
 public:
  explicit Daemons(const WorkloadView& view)
      : view_(view), revisions_(KeepRevisions(view, kDaemonSets, plan_)) {
    for (const NodePtr& node : view.nodes) wanted_.insert(node->meta.name);
    for (const PodPtr& pod : view.pods) {
      if (!pod->meta.deleted) by_node_[NodeOf(*pod)].push_back(pod);
    }
  }

  WorkloadPlan Decide() {
    RemoveUnwanted();
    const auto wait = WaitAfterFailures(view_.pods);
    const bool waits = wait && *wait > view_.now;
    if (waits) plan_.Again(*wait);
    for (const std::string& node : wanted_) {
      if (!by_node_.contains(node) && !waits) Create(node);
    }
    if (FindString(view_.self.object, "spec", "updateStrategy", "type") != "OnDelete") Update();
    WriteStatus();
    return std::move(plan_);
  }

 private:
  bool IsCurrent(const cluster::Pod& pod) const {
    const auto label = pod.meta.labels.find(kRevisionHashLabel);
    return label != pod.meta.labels.end() && label->second == revisions_.current_hash;
  }

  // Pods of other nodes, pods that have ended, and all but the oldest of a node.
  void RemoveUnwanted() {
    for (auto& [node, pods] : by_node_) {
      std::ranges::stable_sort(pods, {}, [](const PodPtr& pod) { return pod->meta.created; });
      std::vector<PodPtr> kept;
      for (const PodPtr& pod : pods) {
        if (wanted_.contains(node) && !pod->Finished() && kept.empty()) {
          kept.push_back(pod);
        } else {
          plan_.Remove(kube::kPods, pod->meta);
        }
      }
      // The successor of a pod that is removed now comes with the next decision.
      pods = std::move(kept);
    }
  }

  void Create(const std::string& node) {
    Json pod = PodOf(view_.self, kDaemonSets);
    MakeObject(pod, "metadata")["generateName"] = view_.self.meta.name + "-";
    MakeObject(pod, "metadata", "labels")[kRevisionHashLabel] = revisions_.current_hash;
    JsonObject& spec = MakeObject(pod, "spec");
    PinTo(node, spec);
    Tolerate(spec);
    plan_.create.push_back({&kube::kPods, std::move(pod)});
  }

  // Old pods that do not serve go at once, others while few are unavailable.
  void Update() {
    const Json& object = view_.self.object;
    const Json* most = Find(object, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable");
    int64_t room = std::max<int64_t>(1, CountOf(most, std::ssize(wanted_), true, 1));
    std::vector<PodPtr> old;
    for (const std::string& node : wanted_) {
      const auto here = by_node_.find(node);
      const PodPtr pod =
          here == by_node_.end() || here->second.empty() ? nullptr : here->second.front();
      const bool serves = pod != nullptr && Serves(*pod);
      if (!serves) --room;
      if (pod == nullptr || IsCurrent(*pod)) continue;
      if (serves) {
        old.push_back(pod);
      } else {
        plan_.Remove(kube::kPods, pod->meta);
      }
    }
    for (const PodPtr& pod : old) {
      if (room-- <= 0) break;
      plan_.Remove(kube::kPods, pod->meta);
    }
  }

  bool Serves(const cluster::Pod& pod) {
    return IsAvailable(pod, NumberAt(view_.self.object, 0, "spec", "minReadySeconds"), view_.now,
                       plan_);
  }

  void WriteStatus() {
    int64_t current = 0, ready = 0, available = 0, updated = 0, misplaced = 0;
    for (const auto& [node, pods] : by_node_) {
      if (pods.empty()) continue;
      const cluster::Pod& pod = *pods.front();
      if (!wanted_.contains(node)) {
        ++misplaced;
        continue;
      }
      ++current;
      ready += IsReady(pod) ? 1 : 0;
      available += Serves(pod) ? 1 : 0;
      updated += IsCurrent(pod) ? 1 : 0;
    }
    JsonObject status{{"currentNumberScheduled", current},
                      {"numberMisscheduled", misplaced},
                      {"desiredNumberScheduled", std::ssize(wanted_)},
                      {"numberReady", ready}};
    PutCount(status, "observedGeneration",
             NumberAt(view_.self.object, 0, "metadata", "generation"));
    PutCount(status, "updatedNumberScheduled", updated);
    PutCount(status, "numberAvailable", available);
    PutCount(status, "numberUnavailable", std::ssize(wanted_) - available);
    plan_.status = std::move(status);
  }

  const WorkloadView& view_;
  WorkloadPlan plan_;
  const Revisions revisions_;
  std::set<std::string> wanted_;                        // nodes
  std::map<std::string, std::vector<PodPtr>> by_node_;  // not being deleted
};

}  // namespace

Result<cluster::Pod> DaemonPod(const WorkloadObject& set) {
  Json pod = PodOf(set, kDaemonSets);
  MakeObject(pod, "metadata")["name"] = set.meta.name;
  Tolerate(MakeObject(pod, "spec"));
  return cluster::DecodePod(pod);
}

bool WantsDaemon(const cluster::Pod& pod, const cluster::Node& node) {
  if (!cluster::SelectsNode(pod, node)) return false;
  return std::ranges::all_of(node.taints, [&](const cluster::Taint& taint) {
    return taint.effect == "PreferNoSchedule" || cluster::Tolerates(pod.tolerations, taint);
  });
}

WorkloadPlan DecideDaemonSet(const WorkloadView& view) { return Daemons(view).Decide(); }

}  // namespace nos::sim
