#include "planning/explanation/remedy.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/selectors.h"
#include "gpu/modes.h"
#include "gpu/product.h"
#include "gpu/shares.h"
#include "planning/explanation/wording.h"
#include "scheduling/pod_names.h"

namespace nos::planning {

bool NodeHasProfile(const Problem& problem, int node, uint16_t slice) {
  const ProblemNode& where = problem.nodes[node];
  for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
    const std::vector<gpu::ProfileId>& profile = problem.slices[slice].profile;
    const ProblemGpu& gpu = problem.gpus[g];
    if (profile[gpu.model] != kNoProfile) return true;
    if (gpu.other != kNoModel && profile[gpu.other] != kNoProfile) return true;
  }
  return false;
}

int LackingDimension(const Draft& draft, int cls, int node) {
  const std::vector<int64_t>& requests = draft.problem().classes[cls].requests;
  for (size_t r = 0; r < requests.size(); ++r) {
    if (requests[r] > 0 && requests[r] > draft.FreeOf(node)[r]) return static_cast<int>(r);
  }
  return -1;
}

namespace {

// Assumed maximum number of GPUs per node.
constexpr int64_t kMaxGpus = 16;
// Steps of the allowance: to check a node; to search a place for a slice on a GPU.
constexpr int64_t kStepsOfNode = 3, kStepsOfPlace = 5;
// Kubernetes adds this taint to cordoned nodes and removes it when they are uncordoned
// (kubernetes.io/docs/reference/labels-annotations-taints).
constexpr std::string_view kCordonTaint = "node.kubernetes.io/unschedulable";

// Kinds of changes; of equally many changes the first kind is preferred.
enum class Kind { kWait, kFreeResource, kLiftFilter, kOptIn, kBiggerNode };

class RemedyFinder {
 public:
  RemedyFinder(const RemedyInput& input, int cls, Allowance& allowance)
      : input_(input),
        allowance_(allowance),
        t_(input.translation),
        class_(cls),
        cls_(t_.problem.classes[cls]),
        after_(input.result.draft) {}

  std::string Find() {
    // A pod that fits on no node whatever the changes needs no further checks.
    if (std::string split = SplitPod(); !split.empty()) return split;
    for (int n = 0; n < static_cast<int>(t_.nodes.size()) && !NothingSmaller(); ++n) {
      if (!allowance_.Spend(kStepsOfNode)) return "";
      if (NeedsOptIn(n)) {
        OptIn(n);
      } else if (input_.has_room[n].value_or(false)) {
        SlicesFit(n);
      } else if (input_.obstacles[n].empty()) {
        WaitForInstances(n);
      }
    }
    return changes_ > 0 ? text_ : AddNode();
  }

 private:
  const std::string& NameOf(int node) const { return t_.nodes[node]->node->meta.name; }
  bool NothingSmaller() const { return changes_ == 1 && kind_ == Kind::kWait; }

  bool IsBetter(size_t changes, Kind kind) const {
    return changes_ == 0 || std::tuple(changes, kind) < std::tuple(changes_, kind_);
  }
  void Offer(size_t changes, Kind kind, std::string text) {
    changes_ = changes;
    kind_ = kind;
    text_ = std::move(text);
  }

  bool NeedsOptIn(int node) const {
    return !cls_.slices.empty() && !t_.nodes[node]->gpus.managed &&
           !t_.problem.nodes[node].slices_as_resources;
  }

  void OptIn(int node) {
    const cluster::StringMap& labels = t_.nodes[node]->node->meta.labels;
    const auto product = labels.find(cluster::kProductLabel);
    if (!input_.obstacles[node].empty() || product == labels.end()) return;
    if (!LackingDimensions(node).empty() || !IsBetter(1, Kind::kOptIn)) return;
    const gpu::Model* model = t_.catalogue->FindByProduct(product->second);
    const std::string_view untold = UntoldPartitioning(*t_.nodes[node]->node);
    if (!untold.empty()) return SeeToAgent(node, untold, model);
    std::string_view mode = "mig";
    if (AsksForShares()) {
      const auto memory = labels.find(cluster::kMemoryLabel);
      const auto mib = memory == labels.end() ? std::nullopt : ParseInt(memory->second);
      model = mib ? gpu::SharesOfMemory(*mib) : nullptr;
      mode = "mps";
    }
    if (model == nullptr || !Serves(*model)) return;
    const auto count = labels.find(cluster::kCountLabel);
    const auto gpus = count == labels.end() ? std::nullopt : ParseInt(count->second);
    if (GpusFor(*model) > gpus.value_or(1)) return;
    Offer(1, Kind::kOptIn,
          fmt::format("opt node {} in to partitioning (label {}={}): it has GPUs {}", NameOf(node),
                      cluster::kPartitioningLabel, mode, product->second));
  }

  // The node is opted in to partitioning, but its agent does not provide the slices (yet).
  void SeeToAgent(int node, std::string_view mode, const gpu::Model* board) {
    const bool serves = std::ranges::all_of(cls_.slices, [&](const SliceCount& s) {
      const std::string& name = t_.slice_names[s.slice];
      if (gpu::IsShareResource(name)) return true;
      if (mode != "hybrid") return false;
      const bool cut = board != nullptr && CanBeCutInto(*board, name);
      return cut || IsOfAgents(name);
    });
    if (!serves) return;
    Offer(1, Kind::kOptIn,
          fmt::format("look at the agent of node {}: with label {}={} it has to run with its own "
                      "device plugin and MPS",
                      NameOf(node), cluster::kPartitioningLabel, mode));
  }

  // These have no MIG profile in the catalogue; agents of hybrid nodes provide them.
  static bool IsOfAgents(const std::string& name) {
    return name == gpu::kWholeGpu || name == gpu::kTimeSlice || gpu::IsPartResource(name);
  }

  bool AsksForShares() const {
    return std::ranges::any_of(cls_.slices, [&](const SliceCount& s) {
      return gpu::IsShareResource(t_.slice_names[s.slice]);
    });
  }

  // A node with shared GPUs for the largest share. "" if no such share can exist.
  std::string AddSharedNode() const {
    int most = 0;
    const gpu::Model& model = gpu::SharesOf(gpu::kMaxShareGib);
    for (const SliceCount& s : cls_.slices) {
      const auto profile = model.FindProfile(t_.slice_names[s.slice]);
      if (!profile) return "";
      most = std::max(most, model.profile(*profile).slots);
    }
    return fmt::format(
        "add a node that the pod may use, with label {}=mps and {} GiB of a GPU's memory free",
        cluster::kPartitioningLabel, most);
  }

  bool Serves(const gpu::Model& model) const {
    return std::all_of(cls_.slices.begin(), cls_.slices.end(), [&](const SliceCount& s) {
      return CanBeCutInto(model, t_.slice_names[s.slice]);
    });
  }

  // Number of empty GPUs of a model that hold all slices if each is filled with what fits, largest
  // first. Values above kMaxGpus are not exact.
  int64_t GpusFor(const gpu::Model& model) const {
    const int64_t asked = t_.problem.shapes[cls_.shape].slice_count;
    if (asked == 1) return 1;
    if (asked > kMaxGpus * model.slots())
      return kMaxGpus + 1;  // every slice takes at least one slot
    std::vector<std::pair<gpu::ProfileId, int64_t>> left;
    left.reserve(cls_.slices.size());
    for (const SliceCount& s : cls_.slices) {
      const auto profile = model.FindProfile(t_.slice_names[s.slice]);
      if (profile) left.emplace_back(*profile, s.count);
    }
    const auto is_left = [](const auto& slice) { return slice.second > 0; };
    int64_t gpus = 0;
    for (; gpus <= kMaxGpus && std::ranges::any_of(left, is_left); ++gpus) {
      if (model.counted()) {
        FillShared(model, left);
        continue;
      }
      FillGpu(model.layouts(), left);
      allowance_.Spend(static_cast<int64_t>(model.layouts().size()));
    }
    return gpus;
  }

  static void FillShared(const gpu::Model& model,
                         std::vector<std::pair<gpu::ProfileId, int64_t>>& left) {
    gpu::Occupancy on(model);
    for (auto& [profile, count] : left) {
      for (auto place = on.FirstPlace(profile); place && count > 0; --count) {
        on.Add(*place);
        place = on.FirstPlace(profile);
      }
    }
  }

  static void FillGpu(const gpu::LayoutTable& table,
                      std::vector<std::pair<gpu::ProfileId, int64_t>>& left) {
    // Prefers the layout with most of the first slice, then of the second and so on.
    std::vector<int64_t> best(left.size());
    for (size_t l = 0; l < table.size(); ++l) {
      if (!table.IsMaximal(static_cast<gpu::LayoutId>(l))) continue;
      const uint64_t members = table.Members(static_cast<gpu::LayoutId>(l));
      std::vector<int64_t> takes;
      takes.reserve(left.size());
      for (const auto& [profile, count] : left) {
        takes.push_back(
            std::min<int64_t>(count, std::popcount(members & table.PlacementsOf(profile))));
      }
      best = std::max(best, takes);
    }
    for (size_t s = 0; s < left.size(); ++s) left[s].second -= best[s];
  }

  std::vector<int> LackingDimensions(int node) const {
    std::vector<int> lacking;
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      const int64_t asked = cls_.requests[r];
      if (asked > 0 && asked > after_.FreeOf(node)[r]) lacking.push_back(static_cast<int>(r));
    }
    return lacking;
  }

  // The GPUs have capacity; looks for other obstacles.
  void SlicesFit(int node) {
    const bool passes = input_.obstacles[node].empty();
    if (!passes) {
      if (LackingDimension(after_, class_, node) < 0) LiftFilters(node);
      return;
    }
    if (LackingDimension(after_, class_, node) < 0) return WaitForReservation(node);
    FreeResources(node);
  }

  void FreeResources(int node) {
    size_t lacking = 0;
    bool bigger = false;  // than the node's total capacity
    const int64_t* free = after_.FreeOf(node);
    const int64_t* capacity = &t_.problem.capacity[node * t_.problem.dimensions];
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      if (cls_.requests[r] <= 0 || cls_.requests[r] <= free[r]) continue;
      ++lacking;
      bigger = bigger || capacity[r] < cls_.requests[r];
    }
    if (!IsBetter(bigger ? 1 : lacking, bigger ? Kind::kBiggerNode : Kind::kFreeResource)) return;
    bigger ? BiggerNode(node, LackingDimensions(node)) : FreeMissing(node, LackingDimensions(node));
  }

  void FreeMissing(int node, const std::vector<int>& lacking) {
    std::vector<std::string> missing;
    for (const int r : lacking) {
      const int64_t left = std::max<int64_t>(0, after_.FreeOf(node)[r]);
      missing.push_back(AmountText(t_.dimensions[r], cls_.requests[r] - left));
    }
    Offer(lacking.size(), Kind::kFreeResource,
          fmt::format("free {} on node {}: its GPUs have room", Join(missing, " and "),
                      NameOf(node)));
  }

  void BiggerNode(int node, const std::vector<int>& lacking) {
    std::vector<std::string> asked, capacities;
    for (const int r : lacking) {
      const int64_t capacity = t_.problem.capacity[node * t_.problem.dimensions + r];
      if (capacity >= cls_.requests[r]) continue;
      asked.push_back(AmountText(t_.dimensions[r], cls_.requests[r]));
      capacities.push_back(AmountText(t_.dimensions[r], capacity));
    }
    Offer(1, Kind::kBiggerNode,
          fmt::format("add a node with at least {}: node {} has room on its GPUs, but {} in all",
                      Join(asked, " and "), NameOf(node), Join(capacities, " and ")));
  }

  void LiftFilters(int node) {
    const std::vector<scheduling::Verdict>& obstacles = input_.obstacles[node];
    std::vector<std::string> steps;
    for (const scheduling::Verdict& o : obstacles) {
      const std::string step = StepFor(o, node);
      if (!step.empty()) steps.push_back(step);
    }
    if (!IsBetter(steps.size(), Kind::kLiftFilter)) return;
    std::string what = fmt::format("{} node {}, which has room ({})", steps[0], NameOf(node),
                                   obstacles[0].message);
    for (size_t i = 1; i < steps.size(); ++i) what += fmt::format(", and {} it", steps[i]);
    Offer(steps.size(), Kind::kLiftFilter, std::move(what));
  }

  // Words before the node's name; "" if another step removes this obstacle, too.
  std::string StepFor(const scheduling::Verdict& obstacle, int node) const {
    if (obstacle.code == "NodeUnschedulable") return "uncordon";
    if (obstacle.code != "Tainted") return "let the pod on";
    const cluster::Node& info = *t_.nodes[node]->node;
    const cluster::Pod& pod = *t_.pending[t_.members[class_][0]];
    int taints = 0;
    for (const cluster::Taint& taint : info.taints) {
      const bool strict = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
      const bool goes =
          info.unschedulable && taint.key == kCordonTaint;  // removed when the node is uncordoned
      taints += strict && !goes && !cluster::Tolerates(pod.tolerations, taint);
    }
    if (taints == 0) return "";
    return taints == 1 ? "tolerate or remove the taint of"
                       : fmt::format("tolerate or remove the {} taints of", taints);
  }

  void WaitForReservation(int node) {
    bool kept = false;
    for (const Reservation& r : input_.result.reservations) {
      if (r.place.node != node) continue;
      kept = true;
      if (!IsBetter(1, Kind::kWait)) continue;
      Offer(1, Kind::kWait,
            fmt::format("wait until {} is served: room on node {} is kept for it",
                        scheduling::PodText(t_.pending[t_.members[r.cls].back()]->Key()),
                        NameOf(node)));
    }
    if (kept || !IsBetter(1, Kind::kWait)) return;
    Offer(1, Kind::kWait,
          fmt::format("give the planner more time: node {} has room", NameOf(node)));
  }

  void WaitForInstances(int node) {
    for (const SliceCount& s : cls_.slices) {
      if (!NodeHasProfile(t_.problem, node, s.slice)) return;
    }
    const int64_t slices = t_.problem.shapes[cls_.shape].slice_count;
    allowance_.Spend(slices * t_.problem.nodes[node].gpu_count * kStepsOfPlace);
    const std::optional<FuturePlace> place = PlaceOnNode(after_, class_, node);
    if (!place || place->in_the_way.empty()) return;
    std::set<std::string> holders;
    size_t changes = place->short_of_resources ? 1 : 0;
    for (const SlotInTheWay& slot : place->in_the_way) {
      const std::string holder = HolderOf(t_, input_.result, slot);
      if (holder.empty() || holders.insert(holder).second) ++changes;
    }
    if (!IsBetter(changes, Kind::kWait)) return;
    Offer(changes, Kind::kWait,
          fmt::format("on node {}, wait for the end of {}", NameOf(node),
                      InTheWayText(t_, input_.result, *place)));
  }

  // No existing node would do.
  std::string AddNode() const {
    if (cls_.slices.empty()) return "add a node that meets the pod's requests and constraints";
    for (const auto& model : t_.catalogue->models()) {
      if (!Serves(*model) || GpusFor(*model) > kMaxGpus) continue;
      return fmt::format("add a node that the pod may use, with GPUs for {} such as {}",
                         SlicesText(t_, cls_), model->name());
    }
    if (AsksForShares()) {
      if (std::string shared = AddSharedNode(); !shared.empty()) return shared;
    }
    std::string renamed = AskByOfferedName();
    if (!renamed.empty()) return renamed;
    std::string forbidden = AllowInCatalogue();
    if (!forbidden.empty()) return forbidden;
    std::string hybrid = OfHybridNodes();
    if (!hybrid.empty()) return hybrid;
    return fmt::format("ask for other slices: no known GPU model can be cut into {}",
                       SlicesText(t_, cls_));
  }

  // A slice is requested under a name that models know but no agent advertises.
  std::string AskByOfferedName() const {
    std::vector<const gpu::Model*> models = t_.problem.models;  // models of existing nodes first
    for (const auto& model : t_.catalogue->models()) models.push_back(model.get());
    for (const SliceCount& s : cls_.slices) {
      const std::string& asked = t_.slice_names[s.slice];
      for (const gpu::Model* model : models) {
        const std::string offered = OfferedAs(*model, asked);
        if (offered.empty() || offered == asked) continue;
        return fmt::format("ask for {} instead of {}: by that name {} offers it", offered, asked,
                           gpu::ProductOf(model->name()));
      }
    }
    return "";
  }

  // For slices that only agents of hybrid nodes provide, or that no GPU provides in one sharing
  // mode.
  std::string OfHybridNodes() const {
    bool time_slices = false, hybrid = false;
    int64_t asked = 0;
    for (const SliceCount& s : cls_.slices) {
      const std::string& name = t_.slice_names[s.slice];
      if (gpu::IsPartResource(name)) return NamePart(name);
      const bool plain = IsOfAgents(name);
      if (!plain && !IsGivenSomewhere(name)) return "";
      time_slices = time_slices || name == gpu::kTimeSlice;
      hybrid = hybrid || plain || gpu::IsShareResource(name);
      asked += plain ? s.count : 0;
    }
    if (!hybrid || asked > kMaxGpus) return "";
    return fmt::format("add a node that the pod may use, with label {}=hybrid{} and room for {}",
                       cluster::kPartitioningLabel,
                       time_slices ? ", time slices (hybrid.timeSlices of its agent)" : "",
                       SlicesText(t_, cls_));
  }

  // True if it can be a share, or a MIG instance of some model.
  bool IsGivenSomewhere(const std::string& name) const {
    if (gpu::IsShareResource(name)) {
      return gpu::SharesOf(gpu::kMaxShareGib).FindProfile(name).has_value();
    }
    return std::ranges::any_of(t_.catalogue->models(),
                               [&](const auto& model) { return CanBeCutInto(*model, name); });
  }

  // "" if no model's instances can be divided like this.
  std::string NamePart(const std::string& resource) const {
    const std::string name = ProfileText(resource);
    const auto part = gpu::ParsePartName(name);
    for (const auto& model : t_.catalogue->models()) {
      if (!part || !gpu::CanHaveParts(*model, *part)) continue;
      return fmt::format(
          "name {} in hybrid.migParts of the agents of nodes with label {}=hybrid that the pod may "
          "use, with GPUs such as {}",
          name, cluster::kPartitioningLabel, model->name());
    }
    return "";
  }

  // A slice has a profile that models have, but the user's catalogue allows it on none of them.
  std::string AllowInCatalogue() const {
    for (const SliceCount& s : cls_.slices) {
      const std::string& asked = t_.slice_names[s.slice];
      const auto allows = [&](const auto& m) { return CanBeCutInto(*m, asked); };
      if (std::ranges::any_of(t_.catalogue->models(), allows)) continue;
      for (const auto& model : t_.catalogue->models()) {
        if (!model->FindProfile(asked)) continue;
        return fmt::format("allow a geometry with {} on {} in your catalogue file",
                           ProfileText(asked), model->name());
      }
    }
    return "";
  }

  // For more slices than any node can hold; "" if there are not so many.
  std::string SplitPod() const {
    int64_t asked = 0;
    for (const SliceCount& s : cls_.slices) asked += s.count;
    const bool bigger = std::ranges::any_of(
        t_.problem.nodes, [](const ProblemNode& n) { return n.gpu_count > kMaxGpus; });
    if (asked <= kMaxGpus || bigger) return "";
    bool served = false;
    for (const auto& model : t_.catalogue->models()) {
      if (!Serves(*model)) continue;
      if (GpusFor(*model) <= kMaxGpus) return "";
      served = true;
    }
    if (!served) return "";
    return fmt::format("split the pod: {} are more than a node with {} GPUs can hold",
                       SlicesText(t_, cls_), kMaxGpus);
  }

  const RemedyInput& input_;
  Allowance& allowance_;
  const Translation& t_;
  const int class_;
  const PodClass& cls_;
  const Draft& after_;
  size_t changes_ = 0;  // number of changes of the best remedy so far; 0: none found
  Kind kind_ = Kind::kWait;
  std::string text_;
};

}  // namespace

std::string FindRemedy(const RemedyInput& input, int cls, Allowance& allowance) {
  return RemedyFinder(input, cls, allowance).Find();
}

}  // namespace nos::planning
