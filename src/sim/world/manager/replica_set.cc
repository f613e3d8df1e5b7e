// pkg/controller/replicaset: as many pods of the template as spec.replicas asks for.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "sim/world/manager/parts.h"

namespace nos::sim {
namespace {

int64_t DeletionCost(const cluster::Pod& pod) {
  const auto cost = pod.meta.annotations.find("controller.kubernetes.io/pod-deletion-cost");
  return cost == pod.meta.annotations.end() ? 0 : ParseInt(cost->second).value_or(0);
}

// Pods that go first are first: not bound, not running, not ready, cheap, young.
void SortForRemoval(std::vector<PodPtr>& pods) {
  std::ranges::sort(pods, {}, [](const PodPtr& pod) {
    return std::tuple(!pod->node_name.empty(), pod->phase == "Running", IsReady(*pod),
                      DeletionCost(*pod), -pod->meta.created.time_since_epoch().count(),
                      std::string_view(pod->meta.name));
  });
}

void CreatePods(const WorkloadView& view, int64_t missing, WorkloadPlan& plan) {
  const auto wait = WaitAfterFailures(view.pods);
  if (wait && *wait > view.now) return plan.Again(*wait);
  Json pod = PodOf(view.self, kReplicaSets);
  MakeObject(pod, "metadata")["generateName"] = view.self.meta.name + "-";
  for (; missing > 0; --missing) plan.create.push_back({&kube::kPods, pod});
}

bool HasTemplateLabels(const WorkloadObject& self, const cluster::Pod& pod) {
  const Json* labels = Find(self.object, "spec", "template", "metadata", "labels");
  if (labels == nullptr || !labels->is_object()) return true;
  return std::ranges::all_of(labels->get_object(), [&](const auto& label) {
    const auto own = pod.meta.labels.find(std::string_view(label.key()));
    return own != pod.meta.labels.end() && Json(own->second) == label.value();
  });
}

}  // namespace

WorkloadPlan DecideReplicaSet(const WorkloadView& view) {
  WorkloadPlan plan;
  const Json& object = view.self.object;
  const int64_t wanted = NumberAt(object, 1, "spec", "replicas");
  const int64_t settle = NumberAt(object, 0, "spec", "minReadySeconds");
  std::vector<PodPtr> active;
  int64_t ready = 0, available = 0, labeled = 0, terminating = 0;
  for (const PodPtr& pod : view.pods) {
    if (!IsActive(*pod)) {
      terminating += pod->meta.deleted && !pod->Finished() ? 1 : 0;
      continue;
    }
    active.push_back(pod);
    ready += IsReady(*pod) ? 1 : 0;
    available += IsAvailable(*pod, settle, view.now, plan) ? 1 : 0;
    labeled += HasTemplateLabels(view.self, *pod) ? 1 : 0;
  }
  const int64_t excess = std::ssize(active) - wanted;
  if (excess < 0) CreatePods(view, -excess, plan);
  if (excess > 0) {
    SortForRemoval(active);
    for (int64_t i = 0; i < excess; ++i) {
      plan.Remove(kube::kPods, active[static_cast<size_t>(i)]->meta);
    }
  }
  JsonObject status{{"replicas", std::ssize(active)}};
  PutCount(status, "fullyLabeledReplicas", labeled);
  PutCount(status, "readyReplicas", ready);
  PutCount(status, "availableReplicas", available);
  PutCount(status, "terminatingReplicas", terminating);
  PutCount(status, "observedGeneration", NumberAt(object, 0, "metadata", "generation"));
  plan.status = std::move(status);
  return plan;
}

}  // namespace nos::sim
