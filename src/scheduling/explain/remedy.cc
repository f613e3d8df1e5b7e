#include "scheduling/explain/remedy.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "cluster/instance_search.h"
#include "scheduling/explain/obstacles.h"
#include "scheduling/explain/pods_in_the_way.h"
#include "scheduling/framework.h"
#include "scheduling/packing/view.h"
#include "scheduling/plugins/dynamic_resources/wanted_claims.h"
#include "scheduling/pod_names.h"
#include "scheduling/pod_state.h"
#include "scheduling/several_shares.h"
#include "scheduling/slice_reasons.h"
#include "scheduling/steps.h"

namespace nos::scheduling {
namespace {

using Lack = Explanation::Lack;
using Nearest = Explanation::Nearest;
using Victims = Explanation::Victims;

constexpr int kMaxRounds = 5;  // of simulating steps and looking for further obstacles

// The slices cannot be created on the scene's node now. `amounts`: "2 nvidia.com/mig-1g.5gb".
Remedy ForMissing(const std::vector<std::string>& amounts, const Scene& scene) {
  const cluster::NodeInfo& node = *scene.snapshot.Find(scene.node);
  const bool whole_held = node.requested.Get(packing::WholeGpuResource()) > 0;
  if (!node.gpus.managed || whole_held || HasUsedInstances(node.gpus)) {
    return FreeResources(amounts, scene.node);
  }
  if (!cluster::MayBePartitioned(node)) {
    return {remedies::kLiftConstraints,
            StepsFor({codes::kGpusBeingPartitioned, ""}, scene).front().text};
  }
  return {remedies::kInspectAgent,
          fmt::format("inspect the agent's pod on node {}: its GPUs cannot be partitioned now",
                      scene.node)};
}

// The changes that one node needs to accept the pod, simulated as far as possible.
class Changes {
 public:
  Changes(const std::string& node, const ExplainInput& input)
      : input_(input), scene_{input.snapshot, input.pod, node, input.reader}, seen_(scene_) {
    Look();
    out_ = left_.out;
    lacks_devices_ = std::ranges::any_of(left_.objections, [](const Reason& reason) {
      return reason.code == codes::kInsufficientDevices;
    });
    for (int round = 0; round < kMaxRounds && CarryOutNext(); ++round) Look();
    for (const Reason& reason : Unsolved()) {
      Add({fmt::format("change what excludes it from node {}: {}", node, reason.message), false});
      fails_ = true;
    }
    AddLacks();
  }

  // Number of steps; SIZE_MAX if the steps do not help.
  size_t Count() const { return fails_ || out_ || lacks_devices_ ? SIZE_MAX : steps_.size(); }
  std::string Text() const {
    std::vector<std::string> texts;
    for (const Step& step : steps_) texts.push_back(step.text);
    return Join(texts, ", and ");
  }
  // Suffix ": it has room" if the pod fits after all steps.
  std::string Outcome() const {
    if (lacks_devices_ || !std::ranges::all_of(steps_, &Step::opens)) return "";
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
    // No pod is evicted as long as resources are missing, such as slices that this profile does
    // not create.
    if (size(left) >= size(left_) || !left.lacks.empty()) return;
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
      if (left_.repartition && lack.slice) continue;  // its partitioner creates them
      const int64_t amount = lack.asked - lack.free;
      (lack.held < amount ? missing : held).push_back(AmountText(lack.resource, amount));
    }
    const std::string& node = scene_.node;
    if (!held.empty()) {
      Add({FreeResources(held, node).text, false});
    }
    if (!missing.empty()) {
      Add({ForMissing(missing, seen_).text, false});
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
  bool lacks_devices_ = false;     // for its claims: only the end of other pods frees some
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

// The new node has to hold all slices, even those that an existing node has.
Remedy ForNoNode(const ExplainInput& input) {
  return DemandOf(input, Advertised::kCounted).ForNoNode(input.pod, input.snapshot);
}

// The slices can be created on the node, and not by the pod's scheduler in this cycle.
Remedy PartitionGpus(const Nearest& nearest, const std::vector<Explanation::Instance>& instances,
                     const cluster::Pod& pod) {
  if (IsTiedToNode(pod)) {
    return {remedies::kUseDeployment,
            fmt::format("run it as a Deployment with a nodeSelector for node {}: the partitioner "
                        "creates no {} for a pod of a DaemonSet",
                        nearest.node, InstancesText(instances))};
  }
  std::string text = fmt::format("create {} on node {}: the partitioner does so",
                                 InstancesText(instances), nearest.node);
  if (nearest.unreported) {
    text += fmt::format(
        ", when the node's agent has reported its GPUs; if that lasts, inspect the agent's pod on "
        "node {}",
        nearest.node);
  }
  return {remedies::kPartitionGpus, std::move(text)};
}

// True if the node's GPUs could hold the slices if nothing used them.
bool HoldsWhenEmpty(const cluster::NodeInfo& node, const cluster::Pod& pod) {
  cluster::NodeInfo empty;
  empty.node = std::make_shared<cluster::Node>();  // without a plan
  empty.gpus = node.gpus;
  std::set<std::string> members;  // of the pod's gang, which stay
  for (const auto& other : node.pods) {
    if (IsPlacedMember(*other)) members.insert(other->Key());
  }
  for (cluster::Gpu& gpu : empty.gpus.gpus) {
    std::erase_if(gpu.instances, [&](const auto& one) { return !members.contains(one.pod); });
    gpu.fixed = false;
    gpu.reported = true;
  }
  return cluster::CanProvide(empty, cluster::RequestsOf(pod));
}

// The remedy if only slices are missing, and the end of pods would not make room for them.
std::optional<Remedy> ForSlicesOf(const Nearest& nearest, const ExplainInput& input) {
  const cluster::NodeInfo& node = *input.snapshot.Find(nearest.node);
  const bool only_slices = std::ranges::all_of(nearest.lacks, &Lack::slice);
  if (!only_slices || nearest.lacks.empty() || nearest.repartition || !node.gpus.managed) {
    return std::nullopt;
  }
  if (!HoldsWhenEmpty(node, input.pod)) {
    return ForNoNode(input);
  }
  if (!nearest.objections.empty()) return std::nullopt;
  Remedy remedy = ForMissing({}, {input.snapshot, input.pod, nearest.node, input.reader});
  return remedy.code == remedies::kFreeResources ? std::nullopt : std::optional(std::move(remedy));
}

// False for a scheduler whose allocations of devices are not known, or without its ResourceSlices.
bool SimulatesClaims(const ExplainInput& input) {
  if (!KnowsDevices(input.snapshot.context())) return false;
  return std::ranges::any_of(input.framework.reservers(), [](const ReservePlugin* plugin) {
    return plugin->Name() == "DynamicResources";
  });
}

// For a pod that its own scheduler will place without help; without a text for others.
Remedy NoneNeeded(const Explanation& why, const ExplainInput& input) {
  const auto none = [](std::string text) {
    return Remedy{remedies::kNoneNeeded, "none needed: " + std::move(text)};
  };
  const auto pods = [&](const Victims& victims, std::string_view one, std::string_view several) {
    return fmt::format("{} {}", PodsText(victims.pods, input.reader),
                       victims.pods.size() == 1 ? one : several);
  };
  if (why.being_partitioned) {
    return none(fmt::format(
        "the agent of node {0} is creating {1} for it; if that lasts, inspect "
        "the agent's pod on node {0}",
        why.being_partitioned->node, InstancesText(why.being_partitioned->repartition.made)));
  }
  if (why.place && !input.pod.claims.empty() && !SimulatesClaims(input)) {
    return {remedies::kInspectResourceClaims,
            fmt::format("inspect its resource claims, which are not simulated: without them it "
                        "fits on node {} now",
                        why.place->node)};
  }
  if (why.place && why.place->repartition.made.empty()) {
    return none(fmt::format("it fits on node {} now", why.place->node));
  }
  if (why.place) {
    return none(fmt::format("nos scheduler has {} created on node {} for it",
                            InstancesText(why.place->repartition.made), why.place->node));
  }
  if (why.awaited) {
    return none(fmt::format("it fits on node {} when {} ended", why.awaited->node,
                            pods(*why.awaited, "has", "have")));
  }
  if (!why.awaits_agent.empty()) {
    return none(
        fmt::format("it fits on node {0} when the node's agent has reported that the "
                    "instances of evicted pods are free; if that lasts, inspect the "
                    "agent's pod on node {0}",
                    why.awaits_agent));
  }
  if (!why.preemption) return {};
  return none(fmt::format("for its {}, {} evicted on node {}", why.by_quota ? "quota" : "priority",
                          pods(*why.preemption, "is", "are"), why.preemption->node));
}

Remedy WaitFor(const Explanation& why, const Victims& victims, const std::string& reader) {
  Remedy remedy = WaitForPods(PodsText(victims.pods, reader), victims.node);
  if (!victims.coming.empty()) {
    remedy.text += fmt::format(", where {} {} first", PodsText(victims.coming, reader),
                               victims.coming.size() == 1 ? "goes" : "go");
  }
  if (victims.ending && victims.coming.empty()) {
    remedy.text += victims.pods.size() == 1 ? ", which is ending" : ", which are ending";
  } else if (why.priority_helps) {
    remedy.text += fmt::format(", or give it a priority above {}", victims.priority);
  }
  return remedy;
}

// The same pre-filter refused all nodes, so there is no nearest node.
Remedy RemedyForAll(const Explanation& why, const ExplainInput& input) {
  const Diagnosis::Entry* entry =
      why.diagnosis.entries.empty() ? nullptr : &why.diagnosis.entries.front();
  std::string step =
      entry == nullptr ? "" : StepForAll({entry->code, entry->message}, input.pod, input.snapshot);
  if (step.empty()) step = "change what excludes it from all nodes";
  return {remedies::kLiftConstraints, std::move(step)};
}

// More than any node has, whatever its hardware.
std::optional<Remedy> ForImpossible(const SliceDemand& demand, const ExplainInput& input) {
  if (auto impossible = demand.Impossible()) return impossible;
  const cluster::ResourceVector requests = cluster::RequestsOf(input.pod);
  for (const auto& [id, amount] : requests.entries()) {
    auto less = RequestLess(cluster::ResourceName(id), amount);
    if (!less) continue;
    for (size_t i = 0; i < input.snapshot.size() && less; ++i) {
      if (input.snapshot.node(i).allocatable.Get(id) >= amount) less.reset();
    }
    if (less) return less;
  }
  return std::nullopt;
}

// The largest first, as in plans: by the part of a GPU, then by name.
void Sort(const std::set<const gpu::Model*>& models, SliceDemand::Slices& slices) {
  if (slices.size() < 2) return;
  const auto rank = [&](const auto& slice) {
    double size = 0;
    for (const gpu::Model* model : models) {
      const auto profile = model->FindProfile(slice.first);
      if (!profile || !model->Allows(*profile)) continue;
      size = std::max(size, static_cast<double>(model->profile(*profile).slots) / model->slots());
    }
    return std::pair(-size, slice.first);
  };
  std::ranges::sort(slices, {}, rank);
}

}  // namespace

SliceDemand DemandOf(const ExplainInput& input, Advertised which) {
  SliceDemand::Slices slices;
  std::set<const gpu::Model*> models;
  size_t max_gpus = 0;
  const cluster::ResourceVector requests = cluster::RequestsOf(input.pod);
  for (const auto& [id, amount] : requests.entries()) {
    bool is_slice = cluster::IsSliceResource(id), advertised = false;
    for (size_t i = 0; i < input.snapshot.size(); ++i) {
      const cluster::NodeInfo& node = input.snapshot.node(i);
      is_slice = is_slice || cluster::IsManagedOn(node, id) || IsOfUnreportedAgent(node, id);
      advertised =
          advertised || (which == Advertised::kLeftOut && node.allocatable.Get(id) >= amount);
    }
    if (is_slice && !advertised && amount > 0)
      slices.emplace_back(cluster::ResourceName(id), amount);
  }
  for (size_t i = 0; i < input.snapshot.size() && !slices.empty(); ++i) {
    const auto& gpus = input.snapshot.node(i).gpus.gpus;
    max_gpus = std::max(max_gpus, gpus.size());
    for (const cluster::Gpu& gpu : gpus) {
      for (const gpu::Model* model : {gpu.model, gpu.alternative}) {
        if (model != nullptr) models.insert(model);
      }
    }
  }
  Sort(models, slices);
  return SliceDemand(std::move(slices), input.snapshot.catalogue(), {models.begin(), models.end()},
                     static_cast<int64_t>(max_gpus));
}

bool HasUnservedShares(const ExplainInput& input) {
  if (!AsksForSeveralShares(input.pod)) return false;
  const cluster::ResourceVector requests = cluster::RequestsOf(input.pod);
  for (size_t i = 0; i < input.snapshot.size(); ++i) {
    const cluster::NodeInfo& node = input.snapshot.node(i);
    const bool offers = std::ranges::all_of(requests.entries(), [&](const auto& entry) {
      return !cluster::IsSliceResource(entry.first) ||
             node.allocatable.Get(entry.first) >= entry.second;
    });
    if (offers && !node.gpus.managed) return false;
  }
  return true;
}

Remedy RemedyOf(const Explanation& why, const Liftable& liftable, const ExplainInput& input) {
  if (why.gate_code == codes::kSchedulingGated) return LiftGates(input.pod);
  if (!why.gate.empty()) {
    return {remedies::kLiftGate, "resolve what keeps it from the queue: " + why.gate};
  }
  if (!why.gang.empty() && !why.beside) return CompleteGang(why.gang);
  const SliceDemand demand = DemandOf(input);
  if (!why.place && !why.in_use && !why.being_partitioned) {
    if (HasUnservedShares(input)) return RequestOneShare(input.pod);
    if (auto impossible = ForImpossible(demand, input)) return *std::move(impossible);
  }
  if (!why.for_quota.empty() && !why.preemption) return {remedies::kRaiseQuota, why.for_quota};
  if (Remedy none = NoneNeeded(why, input); !none.text.empty()) return none;
  if (why.in_use) {
    return WaitForPods(fmt::format("its unknown user ({})", InstancesText(why.in_use->instances)),
                       why.in_use->node);
  }
  if (why.diagnosis.nodes == 0) return ForNoNode(input);
  if (!why.nearest) return RemedyForAll(why, input);
  const Nearest& nearest = *why.nearest;
  if (nearest.repartition && nearest.objections.empty() &&
      std::ranges::all_of(nearest.lacks, &Lack::slice)) {
    return PartitionGpus(nearest, nearest.repartition->made, input.pod);
  }
  const std::optional<Changes> lifted = Lifted(liftable, input);
  const size_t lifts = lifted ? lifted->Count() : SIZE_MAX;
  const size_t opt_ins = liftable.opt_in ? 1 : SIZE_MAX;
  if (why.in_the_way && why.in_the_way->pods.size() <= std::min(lifts, opt_ins)) {
    return WaitFor(why, *why.in_the_way, input.reader);
  }
  if (liftable.opt_in && opt_ins < lifts) return *liftable.opt_in;
  if (lifted) return {remedies::kLiftConstraints, lifted->Text() + lifted->Outcome()};
  if (std::ranges::any_of(nearest.lacks, &Lack::never)) return ForNoNode(input);
  if (auto remedy = ForSlicesOf(nearest, input)) return *std::move(remedy);
  return {nearest.objections.empty() ? remedies::kFreeResources : remedies::kLiftConstraints,
          Changes(nearest.node, input).Text()};
}

std::vector<std::string> OtherRemedies(const Remedy& best, const Explanation& why,
                                       const Liftable& liftable, const ExplainInput& input) {
  const bool waits = best.code == remedies::kWaitForPods || best.code == remedies::kOptInNode ||
                     best.code == remedies::kLiftConstraints ||
                     best.code == remedies::kFreeResources;
  if (!waits || why.in_use || !why.nearest || !why.gang.empty()) return {};
  std::vector<std::string> others;
  const auto add = [&](std::string text) {
    if (text != best.text && std::ranges::find(others, text) == others.end()) {
      others.push_back(std::move(text));
    }
  };
  if (liftable.opt_in) add(liftable.opt_in->text);
  const std::optional<Changes> lifted = Lifted(liftable, input);
  if (lifted && lifted->Count() < SIZE_MAX && !lifted->Outcome().empty()) {
    add(lifted->Text() + lifted->Outcome());
  }
  if (why.in_the_way) add(WaitFor(why, *why.in_the_way, input.reader).text);
  if (why.in_the_way || best.code == remedies::kFreeResources) {
    if (Remedy node = ForNoNode(input); node.code == remedies::kAddNode) add(std::move(node.text));
  }
  return others;
}

}  // namespace nos::scheduling
