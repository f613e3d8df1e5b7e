#include "scheduling/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "cluster/cut.h"
#include "scheduling/explain_promises.h"
#include "scheduling/explain_remedy.h"
#include "scheduling/explain_steps.h"
#include "scheduling/plugins/node_resources_fit/fit.h"
#include "scheduling/pod_state.h"

namespace nos::scheduling {
namespace {

using cluster::NodeInfo;
using cluster::Pod;
using cluster::ResourceVector;
using Cut = Explanation::Cut;
using Lack = Explanation::Lack;
using Nearest = Explanation::Nearest;
using Room = Explanation::Room;

bool IsMig(const Lack& lack) { return lack.resource.starts_with(cluster::kMigResourcePrefix); }

// What cutting there would make and destroy; none: it would not help.
std::optional<Cut> CutOn(const NodeInfo& node, const ResourceVector& requests) {
  const auto promised = cluster::FindCut(node, requests);
  if (!promised) return std::nullopt;
  Cut cut;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    const gpu::LayoutTable& table = gpu.model->layouts();
    gpu::LayoutId layout = gpu.UsedLayout();
    const auto add = [&](const gpu::Placement& placement) {
      const auto id = table.Find(placement);
      const auto with = id && layout != gpu::LayoutTable::kIllegal ? table.Add(layout, *id)
                                                                   : gpu::LayoutTable::kIllegal;
      if (with != gpu::LayoutTable::kIllegal) layout = with;
      return with != gpu::LayoutTable::kIllegal;
    };
    std::vector<gpu::Placement> here;
    for (const cluster::PromisedInstance& one : *promised) {
      if (one.gpu != gpu.index) continue;
      here.push_back(one.placement);
      add(one.placement);
      const bool there = std::ranges::any_of(gpu.instances, [&](const cluster::Instance& instance) {
        return instance.placement == one.placement;
      });
      if (!there) cut.made.push_back({gpu.index, gpu.model->PlacementName(one.placement)});
    }
    for (const cluster::Instance& instance : gpu.instances) {
      const bool taken = std::ranges::find(here, instance.placement) != here.end();
      if (here.empty() || instance.used || taken || add(instance.placement)) continue;
      cut.destroyed.push_back({gpu.index, gpu.model->PlacementName(instance.placement)});
    }
  }
  return cut;
}

// What the empty node could offer, however its GPUs are cut.
int64_t MostOf(const NodeInfo& node, const Shortfall& shortfall) {
  if (!cluster::IsMigResource(shortfall.resource) || !node.gpus.managed) {
    return shortfall.allocatable;
  }
  int64_t most = 0;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    const auto profile = gpu.model->FindProfile(cluster::ResourceName(shortfall.resource));
    if (!profile || !gpu.model->Allows(*profile)) continue;
    most += gpu.model->layouts().Copies(gpu::LayoutTable::kEmpty, *profile);
  }
  return most;
}

// All that keeps the pod from one node.
class Obstacles {
 public:
  Obstacles(const Cycle& cycle, const Pod& pod, const NodeInfo& node)
      : requests_(cluster::RequestsOf(pod)),
        shortfalls_(Shortfalls(requests_, node.allocatable, node.requested)) {
    nearest_.node = node.node->meta.name;
    nearest_.out = IsOut(*node.node, pod);
    if (cycle.nodes && !cycle.nodes->contains(nearest_.node)) Add(cycle.elsewhere, node);
    for (const FilterPlugin* plugin : cycle.filters) {
      Add(plugin->Filter(cycle.state, pod, node), node);
    }
    if (std::ranges::any_of(nearest_.lacks, IsMig)) nearest_.cut = CutOn(node, requests_);
  }

  bool none() const { return nearest_.objections.empty() && nearest_.lacks.empty(); }
  size_t objections() const { return nearest_.objections.size(); }
  // Lacks that cutting GPUs does not mend.
  size_t lacks() const {
    return static_cast<size_t>(std::ranges::count_if(
        nearest_.lacks, [&](const Lack& lack) { return !nearest_.cut || !IsMig(lack); }));
  }
  // The less, the nearer.
  auto Distance() const {
    double shortfall = 0;
    for (const Lack& lack : nearest_.lacks) {
      const double free = static_cast<double>(std::max<int64_t>(lack.free, 0));
      shortfall += 1 - std::min(1.0, free / static_cast<double>(lack.asked));
    }
    const auto never = std::ranges::count_if(nearest_.lacks, &Lack::never);
    return std::tuple(nearest_.out, never, objections() + lacks(), nearest_.cut.has_value(),
                      shortfall);
  }
  const Nearest& nearest() const { return nearest_; }

 private:
  void Add(const Verdict& verdict, const NodeInfo& node) {
    if (verdict.fits()) return;
    AddReason({verdict.code, verdict.message}, node);
    for (const Reason& reason : verdict.more) AddReason(reason, node);
  }
  void AddReason(const Reason& reason, const NodeInfo& node) {
    const auto lack = std::ranges::find_if(
        shortfalls_, [&](const Shortfall& s) { return Message(s) == reason.message; });
    if (lack == shortfalls_.end()) {
      nearest_.objections.push_back(reason);
      return;
    }
    const int64_t most = MostOf(node, *lack);
    nearest_.lacks.push_back({cluster::ResourceName(lack->resource), lack->requested,
                              lack->allocatable - lack->used, lack->allocatable, most,
                              lack->requested > most});
  }

  const ResourceVector requests_;
  const std::vector<Shortfall> shortfalls_;
  Nearest nearest_;
};

Room RoomOf(const Preemption& preemption) {
  Room room{preemption.node, {}, std::numeric_limits<int32_t>::min(), {}, true};
  for (const auto& victim : preemption.victims) {
    room.pods.push_back(victim->Key());
    room.priority = std::max(room.priority, victim->priority);
    if (victim->node_name.empty()) room.coming.push_back(victim->Key());
    room.ending = room.ending && (victim->node_name.empty() || victim->meta.deleted);
  }
  return room;
}

bool Lasts(const Preemption& preemption) {
  return std::ranges::any_of(preemption.victims,
                             [](const auto& victim) { return IsTiedToNode(*victim); });
}

constexpr auto kHighest = std::numeric_limits<int32_t>::max();

// Pods that their owner starts there again cannot go, on the nodes of these candidates.
cluster::ClusterSnapshot WithLasting(const cluster::ClusterSnapshot& snapshot,
                                     const std::vector<Preemption>& candidates) {
  cluster::ClusterSnapshot with = snapshot;
  for (const Preemption& candidate : candidates) {
    if (!Lasts(candidate)) continue;
    for (const auto& there : snapshot.Find(candidate.node)->pods) {
      if (!IsTiedToNode(*there)) continue;
      auto stays = std::make_shared<Pod>(*there);
      stays->priority = kHighest;
      (void)with.UpdatePod(std::move(stays));  // it is there
    }
  }
  return with;
}

// As if it went before all others.
std::optional<Room> InTheWay(const ExplainInput& input) {
  Pod first = input.pod;
  first.priority = kHighest;
  auto candidates = PreemptionCandidates(input.cutting, input.snapshot, first, {});
  if (std::ranges::any_of(candidates, Lasts)) {
    const auto with = WithLasting(input.snapshot, candidates);
    candidates = PreemptionCandidates(input.cutting, with, first, {});
    std::erase_if(candidates, Lasts);  // of nodes that were no candidates before
  }
  const auto fewest =
      std::ranges::min_element(candidates, [](const Preemption& a, const Preemption& b) {
        return a.victims.size() != b.victims.size() ? a.victims.size() < b.victims.size()
                                                    : IsGentler(a, b);
      });
  if (fewest == candidates.end() || fewest->victims.empty()) return std::nullopt;
  return RoomOf(*fewest);
}

// What is ending on the node that the pod is promised, if it fits there then.
std::optional<Room> AwaitedBy(const ExplainInput& input) {
  const NodeInfo* node = input.snapshot.Find(input.pod.nominated_node);
  if (node == nullptr) return std::nullopt;
  Preemption ending{node->node->meta.name, {}, 0};
  cluster::ClusterSnapshot after = input.snapshot;
  for (const auto& there : node->pods) {
    if (!there->meta.deleted || there->priority >= input.pod.priority) continue;
    ending.victims.push_back(there);
    (void)after.Vacate(*there, ending.node);  // it is there
  }
  if (ending.victims.empty()) return std::nullopt;
  const Cycle cycle = input.framework.PreFilter(input.pod, after);
  const bool fits = cycle.verdict.fits() && (!cycle.nodes || cycle.nodes->contains(ending.node)) &&
                    input.framework.Filter(cycle, input.pod, *after.Find(ending.node)).fits();
  return fits ? std::optional(RoomOf(ending)) : std::nullopt;
}

bool WouldPreempt(const ExplainInput& input, const Room& room) {
  const bool may = input.preemption && input.pod.preemption_policy != "Never";
  const bool ends = room.ending && room.coming.empty();  // without that
  if (!may || ends || room.priority == kHighest) return false;
  Pod above = input.pod;
  above.priority = std::max(above.priority, room.priority + 1);
  const auto candidates =
      PreemptionCandidates(input.framework, input.snapshot, above, *input.preemption);
  return std::ranges::find(candidates, room.node, &Preemption::node) != candidates.end();
}

std::string GateOf(const Framework& framework, const Pod& pod) {
  for (const PreEnqueuePlugin* plugin : framework.gates()) {
    const Verdict verdict = plugin->PreEnqueue(pod);
    if (!verdict.fits()) return verdict.message;
  }
  return "";
}

// Who would have to go for it, or goes.
void AddRoom(const ExplainInput& input, Explanation& why) {
  if (input.preemption) {
    why.no_preemption = WhyNotPreempt(input.framework, input.snapshot, input.pod);
    if (!why.no_preemption.empty()) why.awaited = AwaitedBy(input);
  }
  if (why.no_preemption.empty() && input.preemption) {
    const auto found =
        FindPreemption(input.framework, input.snapshot, input.pod, *input.preemption);
    if (found) why.preemption = RoomOf(*found);
  }
  if (why.awaited) return;
  why.in_the_way = InTheWay(input);
  why.priority_helps = why.in_the_way && WouldPreempt(input, *why.in_the_way);
}

std::optional<Explanation::Place> PlaceFor(const ExplainInput& input) {
  const Decision decision = input.framework.Schedule(input.pod, input.snapshot);
  if (decision.node == nullptr) return std::nullopt;
  Explanation::Place place{decision.node->node->meta.name, {}};
  const ResourceVector requests = cluster::RequestsOf(input.pod);
  if (input.framework.gpus_cut() == GpusCut::kHere &&
      !cluster::HasFreeInstances(*decision.node, requests)) {
    place.cut = CutOn(*decision.node, requests).value_or(Cut());
  }
  return place;
}

std::optional<Explanation::Place> BeingCut(const ExplainInput& input) {
  const auto promised = BeingCutFor(input.pod, input.snapshot);
  if (!promised) return std::nullopt;
  Explanation::Place place{input.pod.nominated_node, {}};
  for (const cluster::Gpu& gpu : input.snapshot.Find(place.node)->gpus.gpus) {
    for (const cluster::PromisedInstance& one : *promised) {
      if (one.gpu != gpu.index) continue;
      place.cut.made.push_back({gpu.index, gpu.model->PlacementName(one.placement)});
    }
  }
  return place;
}

}  // namespace

Explanation Explain(const ExplainInput& input) {
  const Framework& framework = input.framework;
  Explanation why;
  why.pod = input.pod.Key();
  why.priority = input.pod.priority;
  why.cuts_here = framework.gpus_cut() == GpusCut::kHere;
  why.gate = GateOf(framework, input.pod);
  why.gang = input.gang;
  why.beside = input.beside;
  why.being_cut = BeingCut(input);
  if (!why.being_cut) why.place = PlaceFor(input);
  why.diagnosis = framework.Diagnose(input.pod, input.snapshot);
  std::optional<Obstacles> nearest, liftable;
  const Cycle cycle = framework.PreFilter(input.pod, input.snapshot);
  for (size_t i = 0; i < input.snapshot.size() && cycle.verdict.fits(); ++i) {
    const Obstacles here(cycle, input.pod, input.snapshot.node(i));
    if (here.none()) continue;
    if (!nearest || here.Distance() < nearest->Distance()) nearest.emplace(here);
    if (here.lacks() > 0 || here.objections() == 0) continue;
    if (!liftable || here.Distance() < liftable->Distance()) liftable.emplace(here);
  }
  const bool on_its_way = why.place || why.being_cut;
  if (nearest && !on_its_way) why.nearest = nearest->nearest();
  if (!on_its_way && why.gate.empty()) AddRoom(input, why);
  why.remedy = RemedyOf(why, liftable ? std::optional(liftable->nearest()) : std::nullopt, input);
  return why;
}

}  // namespace nos::scheduling
