#include "scheduling/explain/remedy.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "scheduling/explain/obstacles.h"
#include "scheduling/explain/room.h"
#include "scheduling/explain/steps.h"
#include "scheduling/framework.h"
#include "scheduling/pod_names.h"

namespace nos::scheduling {
namespace {

using Lack = Explanation::Lack;
using Nearest = Explanation::Nearest;
using Room = Explanation::Room;

constexpr int kMaxRounds = 5;  // of simulating steps and looking for further obstacles

// The changes that one node needs to accept the pod, simulated as far as possible.
class Changes {
 public:
  Changes(const std::string& node, const ExplainInput& input)
      : input_(input), scene_{input.snapshot, input.pod, node, input.reader}, seen_(scene_) {
    Look();
    out_ = left_.out;
    for (int round = 0; round < kMaxRounds && CarryOutNext(); ++round) Look();
    for (const Reason& reason : Unsolved()) {
      Add({fmt::format("change what keeps it from node {}: {}", node, reason.message), false});
      fails_ = true;
    }
    AddLacks();
  }

  // Number of steps; SIZE_MAX if the steps do not help.
  size_t Count() const { return fails_ || out_ ? SIZE_MAX : steps_.size(); }
  std::string Text() const {
    std::vector<std::string> texts;
    for (const Step& step : steps_) texts.push_back(step.text);
    return Join(texts, ", and ");
  }
  // Suffix ": it has room" if the pod fits after all steps.
  std::string Outcome() const {
    if (!std::ranges::all_of(steps_, &Step::opens)) return "";
    return by_priority_ ? ": its priority makes room there" : ": it has room";
  }

 private:
  Nearest Left(const Scene& scene) const {
    const Cycle cycle = input_.framework.PreFilter(scene.pod, scene.snapshot);
    if (!cycle.verdict.fits()) {
      return {scene.node, {{cycle.verdict.code, cycle.verdict.message}}, {}, {}};
    }
    return Obstacles(cycle, scene.pod, *scene.snapshot.Find(scene.node)).nearest();
  }
  // Computes the remaining obstacles, without pods that the pod would preempt if that helps.
  void Look() {
    const auto size = [](const Nearest& left) {
      return left.objections.size() + left.lacks.size();
    };
    seen_ = scene_;
    left_ = Left(seen_);
    by_priority_ = false;
    if (size(left_) == 0 || !MayPreempt(input_)) return;
    Scene without = scene_;
    if (!VacateLesser(input_, without.pod, without.node, without.snapshot)) return;
    Nearest left = Left(without);
    if (size(left) >= size(left_)) return;
    by_priority_ = true;
    left_ = std::move(left);
    seen_ = std::move(without);
  }
  // Objections except those whose steps cannot be simulated.
  std::vector<Reason> Unsolved() const {
    std::vector<Reason> reasons = left_.objections;
    std::erase_if(reasons, [&](const Reason& reason) { return untried_.contains(reason.code); });
    return reasons;
  }
  bool Add(Step step) {
    const bool fresh = std::ranges::find(steps_, step) == steps_.end();
    if (fresh) steps_.push_back(std::move(step));
    return fresh;
  }
  // Adds and simulates steps for the remaining objections. False: all steps are known already.
  bool CarryOutNext() {
    std::vector<Step> next;
    bool fresh = false;
    for (const Reason& reason : Unsolved()) {
      for (Step& step : StepsFor(reason, seen_)) {
        if (!step.carry_out) untried_.insert(reason.code);
        fresh = Add(step) || fresh;
        next.push_back(std::move(step));
      }
    }
    for (const Step& step : next) {
      if (step.carry_out) step.carry_out(scene_);
    }
    return fresh;
  }
  void AddLacks() {
    std::vector<std::string> held, missing;
    for (const Lack& lack : left_.lacks) {
      if (left_.cut && IsSlice(lack)) continue;
      const int64_t amount = lack.asked - lack.free;
      (lack.held < amount ? missing : held).push_back(AmountText(lack.resource, amount));
    }
    const std::string& node = scene_.node;
    if (!held.empty()) {
      Add({fmt::format("free {} on node {}", Join(held, " and "), node), false});
    }
    if (!missing.empty()) {
      Add({fmt::format("make room for {} on node {}", Join(missing, " and "), node), false});
    }
    if (left_.cut) {
      Add({fmt::format("have {} cut on node {}", InstancesText(left_.cut->made), node)});
    }
  }

  const ExplainInput& input_;
  Scene scene_;  // after the simulated steps
  Scene seen_;   // `scene_`, also without preempted pods if that helps
  Nearest left_;
  bool by_priority_ = false;
  std::vector<Step> steps_;
  std::set<std::string> untried_;  // codes
  bool out_ = false;               // the node cannot run pods for now
  bool fails_ = false;  // the steps are listed, but the pod would not fit even after them
};

// Chooses the node with fewer changes. The node in `by_priority` counts only if its steps are
// complete, because it also requires evictions.
std::optional<Changes> Lifted(const Liftable& liftable, const ExplainInput& input) {
  std::optional<Changes> lifted;
  if (liftable.plain) lifted.emplace(liftable.plain->node, input);
  if (!liftable.by_priority) return lifted;
  Changes other(liftable.by_priority->node, input);
  const bool does = !other.Outcome().empty() && other.Count() < SIZE_MAX;
  return does && (!lifted || other.Count() < lifted->Count()) ? std::optional(std::move(other))
                                                              : std::move(lifted);
}

std::string BiggerNode(const Nearest& nearest) {
  std::vector<std::string> asked, there;
  bool kept = false;
  for (const Lack& lack : nearest.lacks) {
    if (!lack.never) continue;
    asked.push_back(AmountText(lack.resource, lack.asked));
    there.push_back(AmountText(lack.resource, lack.most));
    kept = kept || lack.kept > 0;
  }
  return fmt::format("add a node with at least {}: {}, the nearest, has {} {}",
                     Join(asked, " and "), nearest.node, Join(there, " and "),
                     kept ? "beside its DaemonSet and static pods" : "in all");
}

// For a pod that its own scheduler will place without help; "" for others.
std::string NoneNeeded(const Explanation& why, const ExplainInput& input) {
  const std::string& reader = input.reader;
  if (why.being_cut) {
    return fmt::format(
        "none needed: the agent of node {} is asked to cut {} for it; if that lasts, "
        "look at the agent's pod there",
        why.being_cut->node, InstancesText(why.being_cut->cut.made));
  }
  if (why.place && input.pod.claims_devices) {  // served by another scheduler
    return fmt::format(
        "look at its resource claims, which are not simulated: without them it fits on node {} now",
        why.place->node);
  }
  if (why.place) {
    return why.place->cut.made.empty()
               ? fmt::format("none needed: it fits on node {} now", why.place->node)
               : fmt::format("none needed: nos scheduler has {} cut on node {} for it",
                             InstancesText(why.place->cut.made), why.place->node);
  }
  if (why.awaited) {
    return fmt::format("none needed: it gets its room on node {} when {} {} ended",
                       why.awaited->node, NamesOf(why.awaited->pods, reader),
                       why.awaited->pods.size() == 1 ? "has" : "have");
  }
  if (!why.awaits_agent.empty()) {
    return fmt::format(
        "none needed: it gets its room on node {0} when the node's agent has told that the "
        "instances of evicted pods are free; if that lasts, look at the agent's pod there",
        why.awaits_agent);
  }
  if (!why.preemption) return "";
  if (why.by_quota) {
    return fmt::format("none needed: its quota makes room for it on node {}: {} {} evicted",
                       why.preemption->node, NamesOf(why.preemption->pods, reader),
                       why.preemption->pods.size() == 1 ? "is" : "are");
  }
  return fmt::format("none needed: its priority makes room on node {}, where {} {} evicted",
                     why.preemption->node, NamesOf(why.preemption->pods, reader),
                     why.preemption->pods.size() == 1 ? "is" : "are");
}

std::string WaitFor(const Explanation& why, const Room& room, const std::string& reader) {
  std::string text =
      fmt::format("wait for the end of {} on node {}", NamesOf(room.pods, reader), room.node);
  if (!room.coming.empty()) {
    text += fmt::format(", where {} {} first", NamesOf(room.coming, reader),
                        room.coming.size() == 1 ? "goes" : "go");
  }
  if (room.ending && room.coming.empty()) {
    return text + (room.pods.size() == 1 ? ", which is ending" : ", which are ending");
  }
  if (why.priority_helps) text += fmt::format(", or give it a priority above {}", room.priority);
  return text;
}

// The same pre-filter refused all nodes, so there is no nearest node.
std::string RemedyForAll(const Explanation& why, const ExplainInput& input) {
  if (why.diagnosis.entries.empty()) return "change what keeps it from all nodes";
  const Diagnosis::Entry& entry = why.diagnosis.entries.front();
  const std::string step = StepForAll({entry.code, entry.message}, input.pod, input.snapshot);
  return step.empty() ? "change what keeps it from all nodes: " + entry.message : step;
}

}  // namespace

std::string RemedyOf(const Explanation& why, const Liftable& liftable, const ExplainInput& input) {
  if (!why.gate.empty()) return "lift what it waits for before it is queued: " + why.gate;
  if (!why.gang.empty() && !why.beside) return "complete its group: " + why.gang;
  if (!why.for_quota.empty() && !why.preemption) return why.for_quota;
  if (std::string none = NoneNeeded(why, input); !none.empty()) return none;
  if (why.diagnosis.nodes == 0) return "add a node: the cluster has none";
  if (!why.nearest) return RemedyForAll(why, input);
  const Nearest& nearest = *why.nearest;
  if (nearest.cut && nearest.objections.empty() && std::ranges::all_of(nearest.lacks, IsSlice)) {
    return Changes(nearest.node, input).Text() +
           ": the partitioner does so, or nos scheduler if the pod names it";
  }
  const std::optional<Changes> lifted = Lifted(liftable, input);
  const size_t lifts = lifted ? lifted->Count() : SIZE_MAX;
  if (why.in_the_way && why.in_the_way->pods.size() <= lifts) {
    return WaitFor(why, *why.in_the_way, input.reader);
  }
  if (lifted) return lifted->Text() + lifted->Outcome();
  if (std::ranges::any_of(nearest.lacks, &Lack::never)) return BiggerNode(nearest);
  return Changes(nearest.node, input).Text();
}

}  // namespace nos::scheduling
