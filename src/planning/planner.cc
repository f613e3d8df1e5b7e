#include "planning/planner.h"

#include <algorithm>
#include <bit>
#include <map>

#include "planning/explain.h"
#include "planning/gangs.h"
#include "planning/live_filters.h"
#include "planning/stages.h"
#include "planning/translate.h"
#include "scheduling/pod_state.h"

namespace nos::planning {
namespace {

// Slots are kept for at most so many pods at a time, and for one pod per four GPUs.
constexpr int kMostReservations = 32;
constexpr int kGpusPerReservation = 4;

// Makes the plan of what the search found.
class PlanWriter {
 public:
  PlanWriter(const Translation& translation, const StagedResult& result, GpuStates& states)
      : t_(translation), result_(result), draft_(result.draft), states_(states) {}

  Plan Write(const std::vector<Explanation>& explanations) {
    Plan plan;
    plan.complete = result_.complete;
    plan.upper_bound = result_.upper_bound;
    plan.placed = draft_.placed();
    WritePlaced(plan);
    WriteWaiting(plan, explanations);
    WriteNodes(plan);
    return plan;
  }

 private:
  const cluster::Gpu& InfoOf(int gpu) const {
    const int node = t_.problem.gpus[gpu].node;
    return t_.nodes[node]->gpus.gpus[gpu - t_.problem.nodes[node].first_gpu];
  }
  static gpu::Placement PlacementOf(const cluster::Gpu& info, gpu::PlacementId id) {
    return info.model->layouts().placements()[id];
  }

  void WritePlaced(Plan& plan) {
    plan.pods.resize(t_.pending.size());
    for (size_t i = 0; i < plan.pods.size(); ++i) plan.pods[i].pod = t_.pending[i];
    for (size_t i = 0; i < draft_.pods().size(); ++i) {
      const PlacedPod& placed = draft_.pods()[i];
      const int pending = t_.members[placed.cls][result_.members[i]];
      PodOutcome& outcome = plan.pods[pending];
      outcome.placed = true;
      outcome.node = t_.nodes[placed.node]->node->meta.name;
      for (const Device& d : draft_.DevicesOf(placed)) {
        const cluster::Gpu& info = InfoOf(d.gpu);
        const gpu::Placement placement = PlacementOf(info, d.placement);
        outcome.devices.push_back(
            {info.index, placement, info.model->profile(placement.profile).name, !d.created});
        planned_for_[{d.gpu, d.placement}] = pending;
      }
    }
  }

  void WriteWaiting(Plan& plan, const std::vector<Explanation>& explanations) const {
    for (size_t i = 0; i < plan.pods.size(); ++i) {
      PodOutcome& outcome = plan.pods[i];
      if (outcome.placed) continue;
      if (t_.class_of[i] < 0) {
        WriteUnplanned(t_.gang_of[i], outcome);
        continue;
      }
      outcome.reasons = explanations[t_.class_of[i]].reasons;
      outcome.remedy = explanations[t_.class_of[i]].remedy;
    }
  }

  static void WriteUnplanned(const Gang* gang, PodOutcome& outcome) {
    const bool waits_for_gang = gang != nullptr && scheduling::IsSchedulable(*outcome.pod);
    outcome.reasons = {waits_for_gang ? WhyHopeless(*gang) : WhyNotPlanned(*outcome.pod)};
    if (waits_for_gang) outcome.remedy = "complete its group: " + outcome.reasons[0].message;
  }

  void WriteNodes(Plan& plan) const {
    for (size_t n = 0; n < t_.nodes.size(); ++n) {
      const ProblemNode& where = t_.problem.nodes[n];
      PlannedNode node{t_.nodes[n]->node->meta.name, {}};
      for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
        if (draft_.CreatedOn(g) > 0) node.gpus.push_back(WriteGpu(g));
      }
      if (node.gpus.empty()) continue;
      for (const PlannedGpu& gpu : node.gpus) {
        plan.created += gpu.created;
        plan.destroyed += gpu.destroyed;
      }
      plan.gpus_touched += static_cast<int>(node.gpus.size());
      ++plan.nodes_touched;
      plan.nodes.push_back(std::move(node));
    }
  }

  PlannedGpu WriteGpu(int g) const {
    const cluster::Gpu& info = InfoOf(g);
    const ProblemGpu& before = t_.problem.gpus[g];
    const GpuState& after = states_.Get(draft_.gpu(g));
    const gpu::LayoutTable& table = info.model->layouts();
    PlannedGpu gpu{info.index, info.model, {}, 0, 0};
    const uint64_t used = table.Members(before.used);
    const uint64_t target = table.Members(after.occupied) | after.free;
    for (uint64_t rest = target; rest != 0; rest &= rest - 1) {
      const auto id = static_cast<gpu::PlacementId>(std::countr_zero(rest));
      gpu.layout.push_back(WriteInstance(g, id, (used >> id & 1) != 0));
      gpu.created += gpu.layout.back().state == PlannedInstance::State::kNew;
    }
    gpu.destroyed = std::popcount(before.free & ~target);
    std::sort(gpu.layout.begin(), gpu.layout.end(),
              [](const PlannedInstance& a, const PlannedInstance& b) {
                return a.placement.start < b.placement.start;
              });
    return gpu;
  }

  PlannedInstance WriteInstance(int g, gpu::PlacementId id, bool used) const {
    const cluster::Gpu& info = InfoOf(g);
    PlannedInstance instance{PlacementOf(info, id), PlannedInstance::State::kUsed, ""};
    if (used) {
      for (const cluster::Instance& i : info.instances) {
        if (i.placement == instance.placement) instance.pod = i.pod;
      }
      return instance;
    }
    const bool there = (t_.problem.gpus[g].free >> id & 1) != 0;
    instance.state = there ? PlannedInstance::State::kFree : PlannedInstance::State::kNew;
    const auto planned = planned_for_.find({g, id});
    if (planned != planned_for_.end()) instance.pod = t_.pending[planned->second]->Key();
    return instance;
  }

  const Translation& t_;
  const StagedResult& result_;
  const Draft& draft_;
  GpuStates& states_;
  std::map<std::pair<int, gpu::PlacementId>, int> planned_for_;  // GPU and placement -> pod
};

}  // namespace

namespace {

// Searches until the live filters agree with the plan.
StagedResult SearchAndCheck(const cluster::ClusterSnapshot& snapshot,
                            const scheduling::FrameworkChoice& frameworks, Translation& translation,
                            GpuStates& states, const std::function<bool()>& out_of_time) {
  const int gpus = static_cast<int>(translation.problem.gpus.size());
  const int reservations = std::clamp(gpus / kGpusPerReservation, 1, kMostReservations);
  int waiting = 0;
  for (const PodClass& cls : translation.problem.classes) waiting += cls.count;
  for (int round = 1;; ++round) {
    StagedResult result = SearchWithGangs(translation.problem, states, reservations, out_of_time);
    const auto objections = FindObjections(snapshot, frameworks, translation, result);
    if (objections.empty()) {
      // What was ruled out on the way might have been possible in another order.
      if (round > 1 && result.draft.placed() < waiting) result.complete = false;
      return result;
    }
    Heed(objections, round, translation);
  }
}

}  // namespace

Plan MakePlan(const cluster::ClusterSnapshot& snapshot, Pods pending,
              const scheduling::FrameworkChoice& frameworks, const PlanOptions& options) {
  Translation translation = Translate(snapshot, pending, frameworks, options);
  GpuStates states(translation.problem);
  const std::function<bool()> out_of_time =
      options.out_of_time ? options.out_of_time : [] { return false; };
  states.StopWhen(out_of_time);
  const StagedResult result =
      SearchAndCheck(snapshot, frameworks, translation, states, out_of_time);
  const auto explanations = ExplainWaiting(translation, result, frameworks, states, out_of_time);
  return PlanWriter(translation, result, states).Write(explanations);
}

}  // namespace nos::planning
