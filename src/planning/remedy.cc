#include "planning/remedy.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "cluster/annotations.h"
#include "planning/wording.h"

namespace nos::planning {

bool NodeHasProfile(const Problem& problem, int node, uint16_t slice) {
  const ProblemNode& where = problem.nodes[node];
  for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
    if (problem.slices[slice].profile[problem.gpus[g].model] != kNoProfile) return true;
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

// Kinds of change; of equally many changes the first kind is offered.
enum class Kind { kWait, kFreeResource, kLiftFilter, kOptIn, kBiggerNode };

class RemedyFinder {
 public:
  RemedyFinder(const RemedyInput& input, int cls)
      : input_(input),
        t_(input.translation),
        class_(cls),
        cls_(t_.problem.classes[cls]),
        after_(input.result.draft) {}

  std::string Find() {
    for (int n = 0; n < static_cast<int>(t_.nodes.size()) && !NothingSmaller(); ++n) {
      if (NeedsOptIn(n)) {
        OptIn(n);
      } else if (input_.has_room[n]) {
        SlicesFit(n);
      } else if (input_.verdicts[n].fits()) {
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
    if (!input_.verdicts[node].fits() || product == labels.end()) return;
    const gpu::Model* model = gpu::Catalogue::Builtin().FindByProduct(product->second);
    if (model == nullptr || !Serves(*model) || !IsBetter(1, Kind::kOptIn)) return;
    Offer(1, Kind::kOptIn,
          fmt::format("opt node {} in to partitioning (label {}=mig): it has GPUs {}", NameOf(node),
                      cluster::kPartitioningLabel, product->second));
  }

  bool Serves(const gpu::Model& model) const {
    return std::all_of(cls_.slices.begin(), cls_.slices.end(), [&](const SliceCount& s) {
      return model.FindProfile(t_.slice_names[s.slice]).has_value();
    });
  }

  // The GPUs have room; what else is in the way?
  void SlicesFit(int node) {
    const int lacking = LackingDimension(after_, class_, node);
    const bool passes = input_.verdicts[node].fits();
    if (lacking >= 0 && passes) return FreeResource(node, lacking);
    if (lacking < 0 && !passes) return LiftFilter(node);
    if (lacking < 0) WaitForReservation(node);
  }

  void FreeResource(int node, int lacking) {
    const int64_t asked = cls_.requests[lacking];
    const int64_t capacity = t_.problem.capacity[node * t_.problem.dimensions + lacking];
    const cluster::ResourceId id = t_.dimensions[lacking];
    if (capacity >= asked) {
      if (!IsBetter(1, Kind::kFreeResource)) return;
      const int64_t missing = asked - std::max<int64_t>(0, after_.FreeOf(node)[lacking]);
      return Offer(1, Kind::kFreeResource,
                   fmt::format("free {} on node {}: its GPUs have room", AmountText(id, missing),
                               NameOf(node)));
    }
    if (!IsBetter(1, Kind::kBiggerNode)) return;
    Offer(1, Kind::kBiggerNode,
          fmt::format("add a node with at least {}: node {} has room on its GPUs, but {} in all",
                      AmountText(id, asked), NameOf(node), AmountText(id, capacity)));
  }

  void LiftFilter(int node) {
    if (!IsBetter(1, Kind::kLiftFilter)) return;
    const scheduling::Verdict& verdict = input_.verdicts[node];
    std::string what = "let the pod on node {}, which has room ({})";
    if (verdict.code == "Tainted")
      what = "tolerate or remove the taint of node {}, which has room ({})";
    if (verdict.code == "NodeUnschedulable") what = "uncordon node {}, which has room ({})";
    Offer(1, Kind::kLiftFilter, fmt::format(fmt::runtime(what), NameOf(node), verdict.message));
  }

  void WaitForReservation(int node) {
    for (const Reservation& r : input_.result.reservations) {
      if (r.place.node != node || !IsBetter(1, Kind::kWait)) continue;
      Offer(1, Kind::kWait,
            fmt::format("wait until pod {} is served: room on node {} is kept for it",
                        t_.pending[t_.members[r.cls].back()]->Key(), NameOf(node)));
    }
  }

  void WaitForInstances(int node) {
    for (const SliceCount& s : cls_.slices) {
      if (!NodeHasProfile(t_.problem, node, s.slice)) return;
    }
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

  // Nothing that is there would do.
  std::string AddNode() const {
    if (cls_.slices.empty()) return "add a node that meets the pod's requests and constraints";
    for (const auto& model : gpu::Catalogue::Builtin().models()) {
      if (!Serves(*model)) continue;
      return fmt::format("add a node that the pod may use, with GPUs for {} such as {}",
                         SlicesText(t_, cls_), model->name());
    }
    return fmt::format("ask for other slices: no known GPU model can be cut into {}",
                       SlicesText(t_, cls_));
  }

  const RemedyInput& input_;
  const Translation& t_;
  const int class_;
  const PodClass& cls_;
  const Draft& after_;
  size_t changes_ = 0;  // of the best change so far; 0: none found
  Kind kind_ = Kind::kWait;
  std::string text_;
};

}  // namespace

std::string FindRemedy(const RemedyInput& input, int cls) {
  return RemedyFinder(input, cls).Find();
}

}  // namespace nos::planning
