#include "scheduling/explain/obstacles.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cluster/instance_search.h"
#include "scheduling/framework.h"
#include "scheduling/plugins/node_resources_fit/fit.h"
#include "scheduling/remedies.h"
#include "scheduling/slice_reasons.h"
#include "scheduling/steps.h"

namespace nos::scheduling {
namespace {

using cluster::NodeInfo;
using cluster::ResourceVector;
using Repartition = Explanation::Repartition;
using Lack = Explanation::Lack;

// Amount that the empty node could offer, however its GPUs are partitioned.
int64_t MostOf(const NodeInfo& node, const Shortfall& shortfall) {
  if (!cluster::IsManagedOn(node, shortfall.resource)) {
    return shortfall.allocatable;
  }
  int64_t most = 0;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    for (const gpu::Model* model : {gpu.model, gpu.alternative}) {
      if (model == nullptr) continue;
      const auto profile = model->FindProfile(cluster::ResourceName(shortfall.resource));
      if (profile) most += gpu::Occupancy(*model).Copies(*profile);
    }
  }
  return most;
}

int64_t HeldByLesser(const cluster::Pod& pod, const NodeInfo& node, const Lack& lack) {
  if (lack.slice) return std::numeric_limits<int64_t>::max();
  int64_t held = 0;
  const cluster::ResourceId id = cluster::InternResource(lack.resource);
  for (const auto& other : node.pods) {
    if (other->priority < pod.priority) held += cluster::RequestsOf(*other).Get(id);
  }
  return held;
}

Lack LackOf(const NodeInfo& node, const Shortfall& shortfall) {
  Lack lack{cluster::ResourceName(shortfall.resource), shortfall.requested,
            shortfall.allocatable - shortfall.used, shortfall.allocatable};
  lack.kept = HeldByTiedPods(node, shortfall.resource);
  for (const auto& other : node.pods) {
    if (!IsPlacedMember(*other)) continue;
    const int64_t amount = cluster::RequestsOf(*other).Get(shortfall.resource);
    lack.kept += amount;
    lack.members = lack.members || amount > 0;
  }
  lack.held = shortfall.used - lack.kept;
  lack.most = MostOf(node, shortfall) - lack.kept;
  lack.never = lack.asked > lack.most;
  lack.slice = cluster::IsSliceResource(shortfall.resource) ||
               cluster::IsManagedOn(node, shortfall.resource) ||
               IsOfUnreportedAgent(node, shortfall.resource);
  lack.beside_mig = IsKeptForMig(shortfall.resource, node);
  return lack;
}

}  // namespace

bool IsPlacedMember(const cluster::Pod& pod) {
  return pod.priority == std::numeric_limits<int32_t>::max();
}

bool IsOfUnreportedAgent(const NodeInfo& node, cluster::ResourceId resource) {
  return !node.gpus.managed && UnreportedSharingMode(*node.node) == "hybrid" &&
         IsOfHybridNodes(cluster::ResourceName(resource));
}

bool HasUsedInstances(const cluster::NodeGpus& gpus) {
  return std::ranges::any_of(gpus.gpus, [](const cluster::Gpu& gpu) {
    return std::ranges::any_of(gpu.instances, &cluster::Instance::used);
  });
}

std::optional<Repartition> FindRepartition(const NodeInfo& node, const ResourceVector& requests) {
  const auto promised = cluster::FindInstances(node, requests);
  if (!promised) return std::nullopt;
  Repartition repartition;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    const gpu::Model* switched = nullptr;
    for (const cluster::PromisedInstance& one : *promised) {
      if (one.gpu == gpu.index && one.model != nullptr) switched = one.model;
    }
    const gpu::Model& model = switched != nullptr ? *switched : *gpu.model;
    auto on = switched != nullptr ? gpu::Occupancy(model) : gpu.Used();
    const auto add = [&](const gpu::Placement& placement) { return on && on->Add(placement); };
    std::vector<gpu::Placement> here;
    for (const cluster::PromisedInstance& one : *promised) {
      if (one.gpu != gpu.index) continue;
      here.push_back(one.placement);
      add(one.placement);
      const bool there =
          switched == nullptr &&
          std::ranges::count(gpu.instances, one.placement, &cluster::Instance::placement) > 0;
      if (!there) repartition.made.push_back({gpu.index, model.PlacementName(one.placement)});
    }
    for (const cluster::Instance& instance : gpu.instances) {
      const bool taken = std::ranges::find(here, instance.placement) != here.end();
      const bool stays = switched == nullptr && (taken || add(instance.placement));
      if (here.empty() || instance.used || stays) continue;
      repartition.destroyed.push_back({gpu.index, gpu.model->PlacementName(instance.placement)});
    }
  }
  return repartition;
}

Obstacles::Obstacles(const Cycle& cycle, const cluster::Pod& pod, const NodeInfo& node)
    : requests_(cluster::RequestsOf(pod)) {
  nearest_.node = node.node->meta.name;
  nearest_.out = IsOut(*node.node, pod);
  if (cycle.nodes && !cycle.nodes->contains(nearest_.node)) Add(cycle.elsewhere, node);
  for (const FilterPlugin* plugin : cycle.filters) {
    Add(plugin->Filter(cycle.state, pod, node), node);
  }
  give_way_ = std::ranges::all_of(nearest_.lacks, [&](const Lack& lack) {
    return lack.asked - lack.free <= HeldByLesser(pod, node, lack);
  });
  if (std::ranges::none_of(nearest_.lacks, &Lack::slice)) return;
  needs_opt_in_ = !node.gpus.managed && std::ranges::all_of(nearest_.lacks, [](const Lack& lack) {
    return !lack.slice || lack.allocatable == 0;
  });
  nearest_.repartition = FindRepartition(node, requests_);
  if (nearest_.repartition || std::ranges::all_of(node.gpus.gpus, &cluster::Gpu::reported)) return;
  // GPUs that no agent has reported count as empty.
  NodeInfo reported = node;
  for (cluster::Gpu& gpu : reported.gpus.gpus) gpu.reported = true;
  nearest_.repartition = FindRepartition(reported, requests_);
  nearest_.unreported = nearest_.repartition.has_value();
}

bool Obstacles::LacksOnlySlices() const {
  return nearest_.objections.empty() && std::ranges::all_of(nearest_.lacks, &Lack::slice);
}

std::vector<const Lack*> Obstacles::FirstSlices() const {
  std::vector<const Lack*> slices;
  for (size_t i = 0; i < first_lacks_; ++i) {
    if (nearest_.lacks[i].slice) slices.push_back(&nearest_.lacks[i]);
  }
  return slices;
}

size_t Obstacles::lacks() const {
  return static_cast<size_t>(std::ranges::count_if(
      nearest_.lacks, [&](const Lack& lack) { return !nearest_.repartition || !lack.slice; }));
}

std::tuple<bool, size_t, size_t, bool, bool, double> Obstacles::Distance() const {
  double shortfall = 0;
  for (const Lack& lack : nearest_.lacks) {
    const double free = static_cast<double>(std::max<int64_t>(lack.free, 0));
    shortfall += 1 - std::min(1.0, free / static_cast<double>(lack.asked));
  }
  const auto never = static_cast<size_t>(std::ranges::count_if(nearest_.lacks, &Lack::never));
  const bool elsewhere = std::ranges::any_of(nearest_.objections, [](const Reason& reason) {
    return reason.code == codes::kNodeAffinityMismatch;
  });
  return {nearest_.out, never, objections() + lacks(), elsewhere, nearest_.repartition.has_value(),
          shortfall};
}

void Obstacles::Add(const Verdict& verdict, const NodeInfo& node) {
  if (verdict.fits()) return;
  const bool first = none();
  AddReason({verdict.code, verdict.message}, node);
  for (const Reason& reason : verdict.more) AddReason(reason, node);
  if (first) first_lacks_ = nearest_.lacks.size();
}

void Obstacles::AddReason(const Reason& reason, const NodeInfo& node) {
  const auto shortfalls = Shortfalls(requests_, node.allocatable, node.requested);
  const auto lack = std::ranges::find_if(shortfalls, [&](const Shortfall& s) {
    return reason.message == Insufficient(s.resource).message ||
           reason.message == ReasonOf(s, node).message;
  });
  if (lack == shortfalls.end()) {
    nearest_.objections.push_back(reason);
    return;
  }
  Lack found = LackOf(node, *lack);
  const auto same = std::ranges::find(nearest_.lacks, found.resource, &Lack::resource);
  if (same == nearest_.lacks.end()) nearest_.lacks.push_back(std::move(found));
}

}  // namespace nos::scheduling
