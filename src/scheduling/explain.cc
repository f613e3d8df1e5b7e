#include "scheduling/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "cluster/cut.h"
#include "scheduling/plugins/node_resources_fit/fit.h"

namespace nos::scheduling {
namespace {

using cluster::NodeInfo;
using cluster::Pod;
using cluster::ResourceVector;
using Cut = Explanation::Cut;
using Lack = Explanation::Lack;
using Nearest = Explanation::Nearest;
using Room = Explanation::Room;

constexpr size_t kMostNamed = 3;

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
    return std::tuple(never, objections() + lacks(), nearest_.cut.has_value(), shortfall);
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
  Room room{preemption.node, {}, std::numeric_limits<int32_t>::min()};
  for (const auto& victim : preemption.victims) {
    room.pods.push_back(victim->Key());
    room.priority = std::max(room.priority, victim->priority);
  }
  return room;
}

// As if it went before all others.
std::optional<Room> InTheWay(const ExplainInput& input) {
  Pod first = input.pod;
  first.priority = std::numeric_limits<int32_t>::max();
  const auto candidates = PreemptionCandidates(input.cutting, input.snapshot, first, {});
  const auto fewest =
      std::ranges::min_element(candidates, [](const Preemption& a, const Preemption& b) {
        return a.victims.size() != b.victims.size() ? a.victims.size() < b.victims.size()
                                                    : IsGentler(a, b);
      });
  if (fewest == candidates.end() || fewest->victims.empty()) return std::nullopt;
  return RoomOf(*fewest);
}

bool WouldPreempt(const ExplainInput& input, const Room& room) {
  constexpr auto kHighest = std::numeric_limits<int32_t>::max();
  if (!input.preemption || input.pod.preemption_policy == "Never" || room.priority == kHighest) {
    return false;
  }
  Pod above = input.pod;
  above.priority = std::max(above.priority, room.priority + 1);
  const auto candidates =
      PreemptionCandidates(input.framework, input.snapshot, above, *input.preemption);
  return std::ranges::find(candidates, room.node, &Preemption::node) != candidates.end();
}

std::string PodsText(const std::vector<std::string>& pods) {
  std::vector<std::string> named(
      pods.begin(), pods.begin() + static_cast<std::ptrdiff_t>(std::min(pods.size(), kMostNamed)));
  if (pods.size() > kMostNamed) named.push_back(fmt::format("{} more", pods.size() - kMostNamed));
  return Join(named, ", ");
}

std::string StepFor(const Reason& objection, const std::string& node) {
  if (objection.code == "NodeUnschedulable") return "uncordon node " + node;
  if (objection.code == "Tainted") return "tolerate or remove the taints of node " + node;
  if (objection.code == "GpusBeingCut") return "wait until the GPUs of node " + node + " are cut";
  return fmt::format("let the pod on node {} ({})", node, objection.message);
}

// Everything that would have to change on this node.
std::string StepsOn(const Nearest& nearest) {
  std::vector<std::string> steps, missing;
  for (const Reason& objection : nearest.objections) {
    steps.push_back(StepFor(objection, nearest.node));
  }
  for (const Lack& lack : nearest.lacks) {
    if (nearest.cut && IsMig(lack)) continue;
    missing.push_back(AmountText(lack.resource, lack.asked - std::max<int64_t>(lack.free, 0)));
  }
  if (!missing.empty()) {
    steps.push_back(fmt::format("free {} on node {}", Join(missing, " and "), nearest.node));
  }
  if (nearest.cut) {
    steps.push_back(
        fmt::format("have {} cut on node {}", InstancesText(nearest.cut->made), nearest.node));
  }
  return Join(steps, ", and ");
}

std::string BiggerNode(const Nearest& nearest) {
  std::vector<std::string> asked, there;
  for (const Lack& lack : nearest.lacks) {
    if (!lack.never) continue;
    asked.push_back(AmountText(lack.resource, lack.asked));
    there.push_back(AmountText(lack.resource, lack.most));
  }
  return fmt::format("add a node with at least {}: {}, the nearest, has {} in all",
                     Join(asked, " and "), nearest.node, Join(there, " and "));
}

// Of a pod that its own scheduler will place without anybody's help; "": it will not.
std::string NoneNeeded(const Explanation& why) {
  if (why.place) {
    return why.place->cut.made.empty()
               ? fmt::format("none needed: it fits on node {} now", why.place->node)
               : fmt::format("none needed: nos scheduler has {} cut on node {} for it",
                             InstancesText(why.place->cut.made), why.place->node);
  }
  if (!why.preemption) return "";
  return fmt::format("none needed: its priority makes room on node {}, where {} {} evicted",
                     why.preemption->node, PodsText(why.preemption->pods),
                     why.preemption->pods.size() == 1 ? "is" : "are");
}

// `liftable`: the node with the fewest objections of those that lack nothing.
std::string RemedyOf(const Explanation& why, const std::optional<Nearest>& liftable) {
  if (!why.gate.empty()) return "lift what it waits for before it is queued: " + why.gate;
  if (!why.gang.empty()) return "complete its group: " + why.gang;
  if (std::string none = NoneNeeded(why); !none.empty()) return none;
  if (why.diagnosis.nodes == 0) return "add a node: the cluster has none";
  if (!why.nearest) {
    return "change what keeps it from all nodes: " +
           (why.diagnosis.entries.empty() ? "" : why.diagnosis.entries.front().message);
  }
  const Nearest& nearest = *why.nearest;
  if (nearest.cut && nearest.objections.empty() && std::ranges::all_of(nearest.lacks, IsMig)) {
    return StepsOn(nearest) + ": the partitioner does so, or nos scheduler if the pod names it";
  }
  const size_t lifts = liftable ? liftable->objections.size() : SIZE_MAX;
  if (why.in_the_way && why.in_the_way->pods.size() <= lifts) {
    const Room& room = *why.in_the_way;
    const std::string ends =
        fmt::format("wait for the end of {} on node {}", PodsText(room.pods), room.node);
    return !why.priority_helps
               ? ends
               : ends + fmt::format(", or give it a priority above {}", room.priority);
  }
  if (liftable) return StepsOn(*liftable) + ": it has room";
  if (std::ranges::any_of(nearest.lacks, &Lack::never)) return BiggerNode(nearest);
  return StepsOn(nearest);
}

std::string GateOf(const Framework& framework, const Pod& pod) {
  for (const PreEnqueuePlugin* plugin : framework.gates()) {
    const Verdict verdict = plugin->PreEnqueue(pod);
    if (!verdict.fits()) return verdict.message;
  }
  return "";
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
  const Decision decision = framework.Schedule(input.pod, input.snapshot);
  if (decision.node != nullptr) {
    const ResourceVector requests = cluster::RequestsOf(input.pod);
    why.place = {decision.node->node->meta.name, {}};
    if (why.cuts_here && !cluster::HasFreeInstances(*decision.node, requests)) {
      why.place->cut = CutOn(*decision.node, requests).value_or(Cut());
    }
  }
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
  if (nearest && !why.place) why.nearest = nearest->nearest();
  if (!why.place && why.gate.empty()) {
    if (input.preemption) {
      why.no_preemption = WhyNotPreempt(framework, input.snapshot, input.pod);
      if (why.no_preemption.empty()) {
        const auto found = FindPreemption(framework, input.snapshot, input.pod, *input.preemption);
        if (found) why.preemption = RoomOf(*found);
      }
    }
    why.in_the_way = InTheWay(input);
    why.priority_helps = why.in_the_way && WouldPreempt(input, *why.in_the_way);
  }
  why.remedy = RemedyOf(why, liftable ? std::optional(liftable->nearest()) : std::nullopt);
  return why;
}

}  // namespace nos::scheduling
