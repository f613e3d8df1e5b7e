#include "planning/model/draft.h"

#include <algorithm>

namespace nos::planning {
namespace {

// Packs the parts of a cost into one number, most significant first: instances changed, GPU opened,
// node opened, potential lost, slots left empty beside it.
uint64_t PackCost(int changes, bool opens_gpu, int loss, int free_slots) {
  constexpr int kMaxLoss = (1 << 20) - 1;
  return static_cast<uint64_t>(changes) << 44 | static_cast<uint64_t>(opens_gpu) << 36 |
         static_cast<uint64_t>(std::clamp(loss, 0, kMaxLoss)) << 10 |
         static_cast<uint64_t>(free_slots);
}
constexpr uint64_t kOpensNode = uint64_t{1} << 35;

}  // namespace

Draft::Draft(const Problem& problem, GpuStates& states, Free free)
    : problem_(&problem),
      states_(&states),
      dimensions_(problem.dimensions),
      free_(problem.free),
      pods_on_(problem.nodes.size()),
      placed_{std::vector<int>(problem.classes.size()), 0, std::vector<int64_t>(problem.levels)},
      created_(problem.gpus.size()),
      open_(problem.gpus.size()),
      open_gpus_(problem.nodes.size()),
      changes_{{}, std::vector<uint32_t>(problem.nodes.size()), 0},
      gpus_of_(problem.nodes.size()) {
  for (const Shape& shape : problem.shapes) {
    slices_of_.push_back(states.packings().InternSlices(shape.slices));
  }
  original_.reserve(problem.gpus.size());
  for (const ProblemGpu& g : problem.gpus) {
    original_.push_back(states.Start(g, free == Free::kIgnore && g.may_repartition));
  }
  gpu_ = original_;
}

void Draft::Open(int gpu) {
  if (!IsOpen(gpu)) ++open_gpus_[problem_->gpus[gpu].node];
  open_[gpu] = true;
  Touch(problem_->gpus[gpu].node);
}

void Draft::Touch(int node) {
  ++changes_.version[node];
  changes_.nodes.push_back(node);
}

bool Draft::Covers(const std::vector<int64_t>& requests, int node) const {
  const int64_t* free = FreeOf(node);
  for (size_t r = 0; r < dimensions_; ++r) {
    if (requests[r] > 0 && requests[r] > free[r]) return false;
  }
  return true;
}

std::optional<uint64_t> Draft::Find(int shape_index, int node_index, std::vector<Device>* devices) {
  devices->clear();
  if (!problem_->allowed[problem_->shapes[shape_index].allowed][node_index]) return std::nullopt;
  return FindSlices(shape_index, node_index, devices);
}

std::optional<uint64_t> Draft::FindSlices(int shape_index, int node_index,
                                          std::vector<Device>* devices) {
  devices->clear();
  const Shape& shape = problem_->shapes[shape_index];
  const ProblemNode& node = problem_->nodes[node_index];
  const bool node_open = open_gpus_[node_index] > 0;
  if (shape.slices.empty() || node.slices_as_resources) return 0;
  const bool several = shape.slice_count > 1;
  states_->AddWork(5);
  if (several) {
    const bool* fits = states_->packings().Fits(GpusOf(node_index), slices_of_[shape_index]);
    if (fits != nullptr && !*fits) return std::nullopt;
  }
  scratch_.assign(gpu_.begin() + node.first_gpu, gpu_.begin() + node.first_gpu + node.gpu_count);
  states_->AddWork(int64_t{shape.slice_count} * node.gpu_count / 4);
  uint64_t cost = 0;
  if (FindGreedily(shape, node, node_open, devices, &cost)) return cost;
  if (!several) return std::nullopt;
  const std::optional<bool> fits = FindExactly(shape_index, node_index, devices);
  if (!fits) return std::nullopt;  // stopped before the result was known
  states_->packings().Remember(GpusOf(node_index), slices_of_[shape_index], *fits);
  if (!*fits) return std::nullopt;
  return PackCost(2 * shape.slice_count, true, 0,
                  0);  // the last resort: a tight fit costs more than any other
}

std::optional<bool> Draft::HasRoom(int shape, int node) {
  if (problem_->shapes[shape].slices.empty() || problem_->nodes[node].slices_as_resources)
    return true;
  const int gpus = GpusOf(node), slices = slices_of_[shape];
  if (const bool* fits = states_->packings().Fits(gpus, slices)) return *fits;
  std::vector<Device> devices;
  const bool fits = FindSlices(shape, node, &devices).has_value();
  const bool several = problem_->shapes[shape].slice_count > 1;
  if (!fits && several && states_->packings().Fits(gpus, slices) == nullptr) return std::nullopt;
  states_->packings().Remember(gpus, slices, fits);
  return fits;
}

int Draft::GpusOf(int node) {
  auto& [version, number] = gpus_of_[node];
  if (version == changes_.version[node] + 1) return number;
  const ProblemNode& where = problem_->nodes[node];
  std::vector<GpuStateId> gpus(gpu_.begin() + where.first_gpu,
                               gpu_.begin() + where.first_gpu + where.gpu_count);
  std::sort(gpus.begin(), gpus.end());
  version = changes_.version[node] + 1;
  return number = states_->packings().InternGpus(gpus);
}

Draft::Choice Draft::BestGpu(const ProblemNode& node, uint16_t slice, bool node_open) const {
  Choice best;
  for (int i = 0; i < node.gpu_count; ++i) {
    const Step step = states_->Next(scratch_[i], slice);
    if (!step.possible) continue;
    const int gpu = node.first_gpu + i;
    const bool opens = step.created && !IsOpen(gpu) && scratch_[i] == gpu_[gpu];
    const uint64_t cost = PackCost(step.created + (open_[gpu] ? 0 : step.destroyed), opens,
                                   step.loss, step.free_slots) |
                          (opens && !node_open ? kOpensNode : 0);
    if (best.gpu < 0 || cost < best.cost) best = {step, gpu, cost};
  }
  return best;
}

bool Draft::FindGreedily(const Shape& shape, const ProblemNode& node, bool node_open,
                         std::vector<Device>* devices, uint64_t* cost) {
  for (const SliceCount& want : shape.slices) {
    for (int n = 0; n < want.count; ++n) {
      const Choice best = BestGpu(node, want.slice, node_open);
      if (best.gpu < 0) return false;
      scratch_[best.gpu - node.first_gpu] = best.step.next;
      devices->push_back({{want.slice, best.step.placement, best.step.created}, best.gpu});
      *cost += best.cost & ~kOpensNode;
      *cost |= best.cost & kOpensNode;
      node_open |= best.step.created;
    }
  }
  return true;
}

std::optional<bool> Draft::FindExactly(int shape_index, int node_index,
                                       std::vector<Device>* devices) {
  devices->clear();
  const ProblemNode& node = problem_->nodes[node_index];
  int slots = 0;  // every instance takes at least one
  std::vector<int> gpus;
  for (int g = node.first_gpu; g < node.first_gpu + node.gpu_count; ++g) {
    slots += states_->table().MostInstances(states_->Get(gpu_[g]));
    gpus.push_back(g);
  }
  if (problem_->shapes[shape_index].slice_count > slots) return false;
  const auto* found = states_->Pack(GpusOf(node_index), slices_of_[shape_index]);
  if (found == nullptr) return std::nullopt;
  const std::optional<std::vector<Counts>>& packed = *found;
  if (!packed) return false;
  std::sort(gpus.begin(), gpus.end(), [&](int a, int b) { return gpu_[a] < gpu_[b]; });
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto& arranged = states_->Arrange(gpu_[gpus[i]], (*packed)[i]);
    if (!arranged) return false;
    for (const Taking& taking : arranged->takings) devices->push_back({taking, gpus[i]});
  }
  return true;
}

void Draft::Charge(const PlacedPod& pod, int sign) {
  const PodClass& cls = problem_->classes[pod.cls];
  int64_t* free = &free_[static_cast<size_t>(pod.node) * dimensions_];
  for (size_t r = 0; r < dimensions_; ++r) free[r] -= sign * cls.requests[r];
  placed_.by_class[pod.cls] += sign;
  placed_.total += sign;
  placed_.score[cls.level] += sign * (cls.value * kValueUnit + 1);
  for (const Device& d : DevicesOf(pod)) {
    if (!d.created) continue;
    const bool was_open = IsOpen(d.gpu);
    created_[d.gpu] = static_cast<uint16_t>(created_[d.gpu] + sign);
    if (was_open != IsOpen(d.gpu))
      open_gpus_[pod.node] = static_cast<uint16_t>(open_gpus_[pod.node] + sign);
  }
  Touch(pod.node);
}

void Draft::Place(int cls, int node, std::span<const Device> devices) {
  const auto index = static_cast<uint32_t>(pods_.size());
  journal_.entries.push_back({index, true, journal_.states.size()});
  pods_.push_back(
      {cls, node, static_cast<uint32_t>(devices_.size()), static_cast<uint32_t>(devices.size())});
  for (const Device& d : devices) {
    devices_.push_back(d);
    journal_.states.emplace_back(d.gpu, gpu_[d.gpu]);
    gpu_[d.gpu] = states_->After(gpu_[d.gpu], {{d}});
  }
  pods_on_[node].push_back(index);
  Charge(pods_.back(), 1);
}

GpuStateId Draft::Recompute(int gpu) const {
  std::vector<Taking> takings;
  for (const uint32_t index : pods_on_[problem_->gpus[gpu].node]) {
    if (!pods_[index].alive) continue;
    for (const Device& d : DevicesOf(pods_[index])) {
      if (d.gpu == gpu) takings.push_back(d);
    }
  }
  return states_->After(original_[gpu], takings);
}

void Draft::Remove(uint32_t index) {
  PlacedPod& pod = pods_[index];
  journal_.entries.push_back({index, false, journal_.states.size()});
  pod.alive = false;
  for (const Device& d : DevicesOf(pod)) {
    journal_.states.emplace_back(d.gpu, gpu_[d.gpu]);
    gpu_[d.gpu] = Recompute(d.gpu);
  }
  Charge(pod, -1);
  ++changes_.epoch;
}

void Draft::Rollback(size_t mark) {
  while (journal_.entries.size() > mark) {
    const JournalEntry entry = journal_.entries.back();
    journal_.entries.pop_back();
    for (; journal_.states.size() > entry.first_undo; journal_.states.pop_back()) {
      gpu_[journal_.states.back().first] = journal_.states.back().second;
    }
    PlacedPod& pod = pods_[entry.pod];
    Charge(pod, entry.placed ? -1 : 1);
    pod.alive = true;
    if (!entry.placed) continue;
    devices_.resize(pod.first_device);
    pods_on_[pod.node].pop_back();
    pods_.pop_back();
  }
  ++changes_.epoch;
}

ChangeCost Draft::CostOn(int node) const {
  ChangeCost cost;
  const ProblemNode& where = problem_->nodes[node];
  for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
    if (gpu_[g] == original_[g]) continue;
    const GpuState &before = states_->Get(original_[g]), &after = states_->Get(gpu_[g]);
    cost.loss += states_->Lost(before, after);
    if (created_[g] == 0) continue;
    cost.instances += created_[g] + states_->Destroyed(original_[g], gpu_[g], created_[g]);
    ++cost.gpus;
    cost.nodes = 1;
  }
  return cost;
}

ChangeCost Draft::Cost() const {
  ChangeCost cost;
  for (int n = 0; n < static_cast<int>(problem_->nodes.size()); ++n) {
    const ChangeCost here = CostOn(n);
    cost.instances += here.instances;
    cost.gpus += here.gpus;
    cost.nodes += here.nodes;
    cost.loss += here.loss;
  }
  return cost;
}

}  // namespace nos::planning
