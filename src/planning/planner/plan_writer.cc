#include "planning/planner/plan_writer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "planning/model/share_places.h"

namespace nos::planning {
namespace {

// Converts the result of the search into a Plan.
class PlanWriter {
 public:
  PlanWriter(const Translation& translation, const StagedResult& result, GpuStates& states)
      : t_(translation), result_(result), draft_(result.draft), states_(states) {}

  Plan Write(const std::vector<std::vector<Reason>>& reasons) {
    Plan plan;
    plan.complete = result_.complete;
    plan.upper_bound = result_.upper_bound;
    plan.placed = draft_.placed();
    WritePlaced(plan);
    WriteWaiting(plan, reasons);
    WriteKept(plan);
    WriteNodes(plan);
    return plan;
  }

 private:
  const cluster::Gpu& InfoOf(int gpu) const {
    const int node = t_.problem.gpus[gpu].node;
    return t_.nodes[node]->gpus.gpus[gpu - t_.problem.nodes[node].first_gpu];
  }
  // The model of the GPU under the plan: the other model if the plan switches it.
  const gpu::Model& ModelOf(int gpu) const {
    return *t_.problem.models[states_.Get(draft_.gpu(gpu)).model];
  }
  bool Switches(int gpu) const { return &ModelOf(gpu) != InfoOf(gpu).model; }
  const cluster::Gpu& GpuOf(int gpu) const {
    if (!Switches(gpu)) return InfoOf(gpu);
    const auto [at, fresh] = switched_.try_emplace(gpu, InfoOf(gpu));
    if (fresh) at->second.Switch();
    return at->second;
  }
  void WritePlaced(Plan& plan) {
    plan.pods.resize(t_.pending.size());
    for (size_t i = 0; i < plan.pods.size(); ++i) plan.pods[i].pod = t_.pending[i];
    FindPlaces();
    for (size_t i = 0; i < draft_.pods().size(); ++i) {
      const PlacedPod& placed = draft_.pods()[i];
      const int pending = t_.members[placed.cls][result_.members[i]];
      PodOutcome& outcome = plan.pods[pending];
      outcome.placed = true;
      outcome.node = t_.nodes[placed.node]->node->meta.name;
      for (uint32_t d = 0; d < placed.device_count; ++d) {
        const Device& device = draft_.DevicesOf(placed)[d];
        const cluster::Gpu& info = GpuOf(device.gpu);
        const gpu::Placement placement = place_of_[placed.first_device + d];
        outcome.devices.push_back({info.index, placement,
                                   info.model->profile(placement.profile).name, !device.created,
                                   Switches(device.gpu) ? info.model : nullptr});
        planned_for_[{device.gpu, placement}] = pending;
      }
    }
  }

  // Finds the placement of every device. Shares get numbers: existing ones first, then new ones.
  void FindPlaces() {
    for (const PlacedPod& placed : draft_.pods()) {
      const size_t end = placed.first_device + placed.device_count;
      if (place_of_.size() < end) place_of_.resize(end);
    }
    std::map<int, SharePlaces> shares;
    const auto each = [&](const auto& visit) {
      for (const PlacedPod& placed : draft_.pods()) {
        for (uint32_t d = 0; d < placed.device_count; ++d) {
          visit(draft_.DevicesOf(placed)[d], place_of_[placed.first_device + d]);
        }
      }
    };
    each([&](const Device& device, gpu::Placement& place) {
      const cluster::Gpu& info = GpuOf(device.gpu);
      if (!info.model->counted()) {
        place = info.model->layouts().placements()[device.placement];
        return;
      }
      SharePlaces& here = shares.try_emplace(device.gpu, info).first->second;
      if (!device.created) place = here.TakeFree(device.placement);
    });
    for (auto& [g, here] : shares) {
      kept_shares_[g] = here.KeepFree(states_.table().FreeSharesOf(states_.Get(draft_.gpu(g))));
    }
    each([&](const Device& device, gpu::Placement& place) {
      const auto here = shares.find(device.gpu);
      if (here != shares.end() && device.created) place = here->second.Make(device.placement);
    });
  }

  void WriteWaiting(Plan& plan, const std::vector<std::vector<Reason>>& reasons) const {
    for (size_t i = 0; i < plan.pods.size(); ++i) {
      PodOutcome& outcome = plan.pods[i];
      if (outcome.placed) continue;
      if (t_.class_of[i] < 0) {
        WriteUnplanned(t_.gang_of[i], outcome);
        continue;
      }
      outcome.reasons = reasons[t_.class_of[i]];
    }
  }

  void WriteKept(Plan& plan) const {
    for (const Reservation& r : result_.reservations) {
      plan.kept.push_back(
          {t_.pending[t_.members[r.cls].back()]->Key(), t_.nodes[r.place.node]->node->meta.name});
    }
  }

  static void WriteUnplanned(const Gang* gang, PodOutcome& outcome) {
    Explanation why = NotPlanned(*outcome.pod, gang);
    outcome.reasons = std::move(why.reasons);
    outcome.remedy_code = std::move(why.remedy.code);
    outcome.remedy = std::move(why.remedy.text);
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
    const cluster::Gpu& info = GpuOf(g);
    PlannedGpu gpu{info.index, info.model, {}, 0, 0, info.alternative};
    for (const gpu::Placement& placement : TargetOf(g)) {
      gpu.layout.push_back(WriteInstance(g, placement));
      gpu.created += gpu.layout.back().state == PlannedInstance::State::kNew;
    }
    gpu.destroyed =
        draft_.states().Destroyed(draft_.Original(g), draft_.gpu(g), draft_.CreatedOn(g));
    std::ranges::sort(gpu.layout, {}, [](const PlannedInstance& i) { return i.placement.start; });
    return gpu;
  }

  // All instances on the GPU after the plan.
  std::vector<gpu::Placement> TargetOf(int g) const {
    const cluster::Gpu& info = GpuOf(g);
    const GpuState& after = states_.Get(draft_.gpu(g));
    std::vector<gpu::Placement> target;
    if (!info.model->counted()) {
      const gpu::LayoutTable& table = info.model->layouts();
      for (uint64_t rest = table.Members(after.occupied) | after.free; rest != 0;
           rest &= rest - 1) {
        target.push_back(table.placements()[static_cast<size_t>(std::countr_zero(rest))]);
      }
      return target;
    }
    for (const cluster::Instance& instance : info.instances) {
      if (instance.used) target.push_back(instance.placement);
    }
    const std::vector<gpu::Placement>& kept = kept_shares_.at(g);
    target.insert(target.end(), kept.begin(), kept.end());
    for (auto at = planned_for_.lower_bound({g, {}});
         at != planned_for_.end() && at->first.first == g; ++at) {
      target.push_back(at->first.second);
    }
    return target;
  }

  PlannedInstance WriteInstance(int g, gpu::Placement placement) const {
    PlannedInstance instance{placement, PlannedInstance::State::kNew, ""};
    const auto& there = GpuOf(g).instances;
    const auto known = std::ranges::find(there, placement, &cluster::Instance::placement);
    if (known != there.end()) {
      instance.state = known->used ? PlannedInstance::State::kUsed : PlannedInstance::State::kFree;
      instance.pod = known->used ? known->pod : "";
    }
    const auto planned = planned_for_.find({g, placement});
    if (planned != planned_for_.end()) instance.pod = t_.pending[planned->second]->Key();
    return instance;
  }

  const Translation& t_;
  const StagedResult& result_;
  const Draft& draft_;
  GpuStates& states_;
  std::map<std::pair<int, gpu::Placement>, int> planned_for_;  // GPU and placement -> pod
  std::vector<gpu::Placement> place_of_;                       // by device of the draft
  std::map<int, std::vector<gpu::Placement>> kept_shares_;     // free shares that are kept, by GPU
  mutable std::map<int, cluster::Gpu> switched_;               // by GPU
};

}  // namespace

Plan WritePlan(const Translation& translation, const StagedResult& result, GpuStates& states,
               const std::vector<std::vector<Reason>>& reasons) {
  return PlanWriter(translation, result, states).Write(reasons);
}

}  // namespace nos::planning
