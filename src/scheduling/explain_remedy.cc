#include "scheduling/explain_remedy.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "cluster/resources.h"
#include "scheduling/explain_steps.h"

namespace nos::scheduling {
namespace {

using Lack = Explanation::Lack;
using Nearest = Explanation::Nearest;
using Room = Explanation::Room;

constexpr size_t kMostNamed = 3;

bool IsMig(const Lack& lack) { return lack.resource.starts_with(cluster::kMigResourcePrefix); }

std::string PodsText(const std::vector<std::string>& pods) {
  std::vector<std::string> named(
      pods.begin(), pods.begin() + static_cast<std::ptrdiff_t>(std::min(pods.size(), kMostNamed)));
  if (pods.size() > kMostNamed) named.push_back(fmt::format("{} more", pods.size() - kMostNamed));
  return Join(named, ", ");
}

// Everything that would have to change on this node.
std::vector<Step> StepsOn(const Nearest& nearest, const ExplainInput& input) {
  std::vector<Step> steps;
  const auto add = [&](Step step) {
    if (std::ranges::find(steps, step) == steps.end()) steps.push_back(std::move(step));
  };
  const cluster::NodeInfo& node = *input.snapshot.Find(nearest.node);  // it was asked
  for (const Reason& objection : nearest.objections) {
    for (Step& step : StepsFor(objection, input.pod, node, input.snapshot)) add(std::move(step));
  }
  std::vector<std::string> missing;
  for (const Lack& lack : nearest.lacks) {
    if (nearest.cut && IsMig(lack)) continue;
    missing.push_back(AmountText(lack.resource, lack.asked - std::max<int64_t>(lack.free, 0)));
  }
  if (!missing.empty()) {
    add({fmt::format("free {} on node {}", Join(missing, " and "), nearest.node)});
  }
  if (nearest.cut) {
    add({fmt::format("have {} cut on node {}", InstancesText(nearest.cut->made), nearest.node)});
  }
  return steps;
}

std::string Joined(const std::vector<Step>& steps) {
  std::vector<std::string> texts;
  for (const Step& step : steps) texts.push_back(step.text);
  return Join(texts, ", and ");
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
  if (why.being_cut) {
    return fmt::format(
        "none needed: the agent of node {} is asked to cut {} for it; if that lasts, "
        "look at the agent's pod there",
        why.being_cut->node, InstancesText(why.being_cut->cut.made));
  }
  if (why.place) {
    return why.place->cut.made.empty()
               ? fmt::format("none needed: it fits on node {} now", why.place->node)
               : fmt::format("none needed: nos scheduler has {} cut on node {} for it",
                             InstancesText(why.place->cut.made), why.place->node);
  }
  if (why.awaited) {
    return fmt::format("none needed: it gets its room on node {} when {} {} ended",
                       why.awaited->node, PodsText(why.awaited->pods),
                       why.awaited->pods.size() == 1 ? "has" : "have");
  }
  if (!why.preemption) return "";
  return fmt::format("none needed: its priority makes room on node {}, where {} {} evicted",
                     why.preemption->node, PodsText(why.preemption->pods),
                     why.preemption->pods.size() == 1 ? "is" : "are");
}

std::string WaitFor(const Explanation& why, const Room& room) {
  std::string text =
      fmt::format("wait for the end of {} on node {}", PodsText(room.pods), room.node);
  if (!room.coming.empty()) {
    text += fmt::format(", where {} {} first", PodsText(room.coming),
                        room.coming.size() == 1 ? "goes" : "go");
  }
  if (room.ending && room.coming.empty()) {
    return text + (room.pods.size() == 1 ? ", which is ending" : ", which are ending");
  }
  return !why.priority_helps
             ? text
             : text + fmt::format(", or give it a priority above {}", room.priority);
}

// Without a node that was asked: it is all the same to a pre-filter.
std::string RemedyForAll(const Explanation& why, const ExplainInput& input) {
  if (why.diagnosis.entries.empty()) return "change what keeps it from all nodes";
  const Diagnosis::Entry& entry = why.diagnosis.entries.front();
  const std::string step = StepForAll({entry.code, entry.message}, input.pod, input.snapshot);
  return step.empty() ? "change what keeps it from all nodes: " + entry.message : step;
}

std::string Lifted(const Nearest& liftable, const ExplainInput& input) {
  const std::vector<Step> steps = StepsOn(liftable, input);
  const bool opens = std::ranges::all_of(steps, &Step::opens);
  return Joined(steps) + (opens ? ": it has room" : "");
}

}  // namespace

std::string RemedyOf(const Explanation& why, const std::optional<Nearest>& liftable,
                     const ExplainInput& input) {
  if (!why.gate.empty()) return "lift what it waits for before it is queued: " + why.gate;
  if (!why.gang.empty() && !why.beside) return "complete its group: " + why.gang;
  if (std::string none = NoneNeeded(why); !none.empty()) return none;
  if (why.diagnosis.nodes == 0) return "add a node: the cluster has none";
  if (!why.nearest) return RemedyForAll(why, input);
  const Nearest& nearest = *why.nearest;
  if (nearest.cut && nearest.objections.empty() && std::ranges::all_of(nearest.lacks, IsMig)) {
    return Joined(StepsOn(nearest, input)) +
           ": the partitioner does so, or nos scheduler if the pod names it";
  }
  const size_t lifts = liftable && !liftable->out ? liftable->objections.size() : SIZE_MAX;
  if (why.in_the_way && why.in_the_way->pods.size() <= lifts) return WaitFor(why, *why.in_the_way);
  if (liftable) return Lifted(*liftable, input);
  if (std::ranges::any_of(nearest.lacks, &Lack::never)) return BiggerNode(nearest);
  return Joined(StepsOn(nearest, input));
}

}  // namespace nos::scheduling
