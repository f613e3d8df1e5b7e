#include "planning/testing/clusters.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "gpu/modes.h"
#include "gpu/shares.h"
#include "planning/planner.h"
#include "planning/remedies.h"
#include "scheduling/framework.h"
#include "scheduling/plugins/node_resources_fit/fit.h"

namespace nos::planning::testing {
namespace {

Quantity Amount(const std::string& text) { return Quantity::Parse(text).value(); }

std::string ResourceOf(const std::string& profile) {
  if (profile == "gpu") return std::string(gpu::kWholeGpu);
  if (profile == "shared") return std::string(gpu::kTimeSlice);
  const bool share = profile.find('.') == std::string::npos;
  return (share ? "nvidia.com/gpu-" : "nvidia.com/mig-") + profile;
}

std::unique_ptr<cluster::Pod> PodWith(const std::string& name,
                                      const std::vector<std::string>& profiles,
                                      const std::string& cpu) {
  auto pod = std::make_unique<cluster::Pod>();
  pod->meta.ns = "x";
  pod->meta.name = name;
  pod->phase = "Pending";
  for (const std::string& profile : profiles) {
    cluster::Container& c = pod->containers.emplace_back();
    c.requests[ResourceOf(profile)] = Quantity::FromValue(1);
  }
  if (pod->containers.empty()) pod->containers.emplace_back();
  if (!cpu.empty()) pod->containers[0].requests["cpu"] = Amount(cpu);
  return pod;
}

}  // namespace

cluster::Node& ClusterBuilder::PlainNode(const std::string& name) {
  cluster::Node& node = *nodes_.emplace_back(std::make_unique<cluster::Node>());
  node.meta.name = name;
  node.allocatable = {{"cpu", Amount("64")}, {"pods", Amount("110")}};
  return node;
}

cluster::Node& ClusterBuilder::Node(const std::string& name, const std::string& product,
                                    const std::vector<std::string>& layouts) {
  cluster::Node& node = PlainNode(name);
  node.meta.labels = {{std::string(cluster::kPartitioningLabel), "mig"},
                      {std::string(cluster::kProductLabel), product},
                      {std::string(cluster::kCountLabel), std::to_string(layouts.size())}};
  for (size_t i = 0; i < layouts.size(); ++i) {
    node.meta.annotations[fmt::format("{}status-layout-{}", cluster::kPrefix, i)] = layouts[i];
  }
  return node;
}

cluster::Node& ClusterBuilder::SharedNode(const std::string& name, int gib,
                                          const std::vector<std::string>& layouts) {
  cluster::Node& node = Node(name, "Tesla-V100-SXM2-32GB", layouts);
  node.meta.labels[std::string(cluster::kPartitioningLabel)] = "mps";
  for (size_t i = 0; i < layouts.size(); ++i) {
    node.meta.annotations[fmt::format("{}status-model-{}", cluster::kPrefix, i)] =
        gpu::SharesOf(gib).name();
  }
  return node;
}

cluster::Node& ClusterBuilder::HybridNode(const std::string& name,
                                          const std::vector<std::string>& gpus) {
  cluster::Node& node = Node(name, "NVIDIA-H100-80GB-HBM3", std::vector<std::string>(gpus.size()));
  node.meta.labels[std::string(cluster::kPartitioningLabel)] = "hybrid";
  for (size_t i = 0; i < gpus.size(); ++i) {
    const size_t bar = gpus[i].find('|'), space = std::min(gpus[i].find(' '), gpus[i].size());
    const auto set = [&](const char* what, std::string value) {
      node.meta.annotations[fmt::format("{}{}-{}", cluster::kPrefix, what, i)] = std::move(value);
    };
    set("status-model", gpus[i].substr(0, std::min(bar, space)));
    set("status-other-model",
        bar < space ? gpus[i].substr(bar + 1, space - bar - 1) : std::string());
    set("status-layout", gpus[i].substr(std::min(space + 1, gpus[i].size())));
  }
  return node;
}

cluster::Pod& ClusterBuilder::Pod(const std::string& name, const std::vector<std::string>& profiles,
                                  int priority, const std::string& cpu) {
  pending_.push_back(PodWith(name, profiles, cpu));
  pending_.back()->priority = priority;
  return *pending_.back();
}

cluster::Pod& ClusterBuilder::Running(const std::string& name, const std::string& node,
                                      const std::vector<std::string>& profiles,
                                      const std::string& cpu) {
  running_.push_back(PodWith(name, profiles, cpu));
  running_.back()->phase = "Running";
  running_.back()->node_name = node;
  return *running_.back();
}

cluster::ClusterSnapshot ClusterBuilder::Snapshot(const gpu::Catalogue& catalogue) const {
  std::vector<std::shared_ptr<const cluster::Node>> nodes;
  for (const auto& node : nodes_) nodes.push_back(std::make_shared<const cluster::Node>(*node));
  SharedPods pods;
  for (const auto& pod : running_) pods.push_back(std::make_shared<const cluster::Pod>(*pod));
  return cluster::ClusterSnapshot::Build(nodes, pods, catalogue);
}

SharedPods ClusterBuilder::Pending() const {
  SharedPods pods;
  for (const auto& pod : pending_) pods.push_back(std::make_shared<const cluster::Pod>(*pod));
  return pods;
}

Plan ClusterBuilder::MakePlan(const PlanOptions& options) const {
  const scheduling::Framework framework = scheduling::Framework::Default();
  const cluster::ClusterSnapshot snapshot = Snapshot();
  const SharedPods pending = Pending();
  Plan plan = planning::MakePlan(snapshot, pending, framework, options);
  AddRemedies(snapshot, options.gangs, framework, {}, options.out_of_time, plan);
  return plan;
}

namespace {

const PlannedGpu* FindGpu(const Plan& plan, const std::string& node, int gpu) {
  for (const PlannedNode& n : plan.nodes) {
    if (n.name != node) continue;
    for (const PlannedGpu& g : n.gpus) {
      if (g.index == gpu) return &g;
    }
  }
  return nullptr;
}

}  // namespace

std::string LayoutText(const Plan& plan, const std::string& node, int gpu) {
  const PlannedGpu* found = FindGpu(plan, node, gpu);
  if (found == nullptr) return "";
  std::vector<std::string> parts;
  for (const PlannedInstance& i : found->layout) {
    const char* mark = i.state == PlannedInstance::State::kUsed  ? "*"
                       : i.state == PlannedInstance::State::kNew ? "+"
                                                                 : "";
    parts.push_back(found->model->PlacementName(i.placement) + mark);
  }
  return Join(parts, " ");
}

std::map<std::string, int> CountsAfter(const Plan& plan, const cluster::ClusterSnapshot& snapshot,
                                       const std::string& node, int gpu) {
  std::map<std::string, int> counts;
  if (const PlannedGpu* found = FindGpu(plan, node, gpu)) {
    for (const PlannedInstance& i : found->layout) {
      ++counts[found->model->profile(i.placement.profile).name];
    }
    return counts;
  }
  for (const cluster::Gpu& g : snapshot.Find(node)->gpus.gpus) {
    if (g.index != gpu) continue;
    for (const cluster::Instance& i : g.instances) {
      ++counts[g.model->profile(i.placement.profile).name];
    }
  }
  return counts;
}

namespace {

// By placement: whether it is used.
struct Instances : std::map<gpu::Placement, bool> {
  const gpu::Model* model = nullptr;
};

Instances Before(const cluster::ClusterSnapshot& snapshot, const std::string& node, int index) {
  Instances instances;
  const cluster::NodeInfo* info = snapshot.Find(node);
  if (info == nullptr) return instances;
  for (const cluster::Gpu& g : info->gpus.gpus) {
    if (g.index != index) continue;
    for (const cluster::Instance& i : g.instances) instances[i.placement] = i.used;
    instances.model = g.model;
  }
  return instances;
}

std::string GpuFault(const PlannedGpu& gpu, Instances before, bool serves) {
  int given_up = 0;  // instances destroyed by a switch
  if (gpu.model != before.model) {
    for (const auto& [placement, used] : before) {
      if (used) return "switched while in use";
    }
    given_up = static_cast<int>(before.size());
    before.clear();
  }
  std::vector<gpu::Placement> target;
  std::set<gpu::Placement> kept;
  int created = 0;
  for (const PlannedInstance& i : gpu.layout) {
    target.push_back(i.placement);
    const auto it = before.find(i.placement);
    const bool is_new = i.state == PlannedInstance::State::kNew;
    created += is_new;
    if (is_new == (it != before.end())) return "new and old instances confused";
    if (is_new) continue;
    if (it->second != (i.state == PlannedInstance::State::kUsed)) return "used and free confused";
    kept.insert(i.placement);
  }
  gpu::Occupancy on(*gpu.model);
  for (const gpu::Placement& placement : target) {
    if (!on.Add(placement)) return "illegal layout";
  }
  int destroyed = 0;
  for (const auto& [placement, used] : before) {
    if (kept.contains(placement)) continue;
    if (used) return "used instance destroyed";
    ++destroyed;
  }
  if (destroyed + given_up != gpu.destroyed || created != gpu.created) return "miscounted";
  return serves ? "" : "partitioned for no pod";
}

}  // namespace

std::string PlanFault(const Plan& plan, const cluster::ClusterSnapshot& snapshot) {
  std::set<std::tuple<std::string, int, gpu::Placement>> taken;
  std::map<std::string, cluster::ResourceVector> asked;
  int placed = 0;
  for (const PodOutcome& pod : plan.pods) {
    placed += pod.placed;
    if (!pod.placed && pod.reasons.empty()) return pod.pod->Key() + " waits for no reason";
    if (!pod.placed) continue;
    asked[pod.node].Add(cluster::RequestsOf(*pod.pod));
    for (const AssignedDevice& d : pod.devices) {
      if (!taken.insert({pod.node, d.gpu, d.placement}).second) return "instance given twice";
      Instances before = Before(snapshot, pod.node, d.gpu);
      if (d.model != nullptr) before.clear();
      const auto it = before.find(d.placement);
      if (d.existing && (it == before.end() || it->second)) return "no such free instance";
      const PlannedGpu* gpu = FindGpu(plan, pod.node, d.gpu);
      if (!d.existing && gpu == nullptr) return "new instance on an unchanged GPU";
      if (gpu == nullptr) continue;
      if (std::none_of(gpu->layout.begin(), gpu->layout.end(), [&](const PlannedInstance& i) {
            return i.placement == d.placement && i.pod == pod.pod->Key();
          })) {
        return "the GPU's layout lacks the pod's instance";
      }
    }
  }
  if (placed != plan.placed || placed > plan.upper_bound) return "placed or upper bound wrong";
  for (const auto& [node, requests] : asked) {
    const cluster::NodeInfo& info = *snapshot.Find(node);
    if (!scheduling::Fits(requests, info.allocatable, info.requested, scheduling::MigOn(info))) {
      return "resources of " + node + " exceeded";
    }
  }
  for (const PlannedNode& node : plan.nodes) {
    for (const PlannedGpu& gpu : node.gpus) {
      const bool serves =
          std::any_of(gpu.layout.begin(), gpu.layout.end(), [](const PlannedInstance& i) {
            return i.state == PlannedInstance::State::kNew && !i.pod.empty();
          });
      const std::string fault = GpuFault(gpu, Before(snapshot, node.name, gpu.index), serves);
      if (!fault.empty()) return fmt::format("{} GPU {}: {}", node.name, gpu.index, fault);
    }
  }
  return "";
}

}  // namespace nos::planning::testing
