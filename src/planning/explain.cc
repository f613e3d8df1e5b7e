#include "planning/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "planning/remedy.h"
#include "planning/wording.h"
#include "scheduling/pod_state.h"

namespace nos::planning {
namespace {

// Pairs of class and node that a remedy is looked for on: beyond, classes go without one.
constexpr size_t kMostLookedAt = 4'000'000;

using CodeAndMessage = std::pair<std::string, std::string>;

class Explainer {
 public:
  Explainer(const Translation& translation, const StagedResult& result,
            const scheduling::Framework& framework, GpuStates& states)
      : t_(translation),
        result_(result),
        framework_(framework),
        before_(translation.problem, states, Draft::Free::kKeep),
        after_(result.draft),
        verdicts_(translation.row_pod.size()),
        had_room_(translation.problem.shapes.size()),
        has_room_(translation.problem.shapes.size()) {}

  std::vector<Explanation> Run() {
    std::vector<Explanation> all(t_.problem.classes.size());
    size_t looked_at = 0;
    for (size_t c = 0; c < all.size(); ++c) {
      const int cls = static_cast<int>(c);
      if (after_.PlacedOf(cls) == t_.problem.classes[c].count) continue;
      all[c].reasons = ReasonsOf(cls);
      looked_at += t_.nodes.size();
      if (looked_at > kMostLookedAt) continue;
      const auto& verdicts = VerdictsOf(t_.problem.classes[c].allowed);
      all[c].remedy = FindRemedy({t_, result_, verdicts}, cls, after_);
    }
    return all;
  }

 private:
  // What the filters say of each node, for pods of this row.
  const std::vector<scheduling::Verdict>& VerdictsOf(int row) {
    std::vector<scheduling::Verdict>& verdicts = verdicts_[row];
    if (!verdicts.empty()) return verdicts;
    const cluster::Pod& pod = *t_.pending[t_.row_pod[row]];
    for (const cluster::NodeInfo* node : t_.nodes) {
      verdicts.push_back(StaticVerdict(framework_, t_.row_cycle[row], pod, *node));
    }
    return verdicts;
  }

  // Whether the node's GPUs have room for the shape, by node.
  const std::vector<bool>& RoomFor(int shape, Draft& draft, std::vector<std::vector<bool>>& known) {
    std::vector<bool>& room = known[shape];
    for (size_t n = room.size(); n < t_.nodes.size(); ++n) {
      room.push_back(draft.FindSlices(shape, static_cast<int>(n), &devices_).has_value());
    }
    return room;
  }

  std::vector<Reason> ReasonsOf(int cls) {
    const PodClass& c = t_.problem.classes[cls];
    const std::vector<scheduling::Verdict>& verdicts = VerdictsOf(c.allowed);
    const std::vector<bool>& had_room = RoomFor(c.shape, before_, had_room_);
    const std::vector<bool>& has_room = RoomFor(c.shape, after_, has_room_);
    std::map<CodeAndMessage, int> nodes;
    for (size_t n = 0; n < t_.nodes.size(); ++n) {
      const int node = static_cast<int>(n);
      ++nodes[verdicts[n].fits() ? AtNode(cls, node, had_room[n], has_room[n])
                                 : CodeAndMessage{verdicts[n].code, verdicts[n].message}];
    }
    std::vector<Reason> reasons;
    for (const auto& [what, count] : nodes) reasons.push_back({what.first, what.second, count});
    std::stable_sort(reasons.begin(), reasons.end(),
                     [](const Reason& a, const Reason& b) { return a.nodes > b.nodes; });
    if (t_.nodes.empty()) reasons.push_back({"NoNodes", "the cluster has no nodes", 0});
    AddReservation(cls, reasons);
    return reasons;
  }

  void AddReservation(int cls, std::vector<Reason>& reasons) const {
    for (const Reservation& r : result_.reservations) {
      if (r.cls != cls) continue;
      const std::string text =
          fmt::format("has waited long: slots on node {} are kept free for it until the end of {}",
                      t_.nodes[r.place.node]->node->meta.name, InTheWayText(t_, result_, r.place));
      reasons.insert(reasons.begin(), {"SlotsKept", text, 1});
      return;
    }
  }

  CodeAndMessage AtNode(int cls, int node, bool had_room, bool has_room) const {
    const PodClass& c = t_.problem.classes[cls];
    if (const auto lack = LackOfGpus(c, node)) return *lack;
    if (const int r = LackingDimension(before_, cls, node); r >= 0) {
      const cluster::ResourceId id = t_.dimensions[r];
      return {id == cluster::kPods ? "TooManyPods" : "InsufficientResource", InsufficientText(id)};
    }
    if (!had_room) {
      return {
          "NoRoomForSlices",
          fmt::format("node(s) had no room for {} beside the instances in use", SlicesText(t_, c))};
    }
    if (!has_room || LackingDimension(after_, cls, node) >= 0) {
      return {"TakenByPendingPods", "node(s) had room, which goes to other pending pods"};
    }
    return {"SlotsKeptForOthers", "node(s) had room, which is kept for pods that wait longer"};
  }

  // What no cutting of this node's GPUs can change.
  std::optional<CodeAndMessage> LackOfGpus(const PodClass& cls, int node) const {
    const cluster::NodeGpus& gpus = t_.nodes[node]->gpus;
    if (cls.slices.empty() || t_.problem.nodes[node].slices_as_resources) return std::nullopt;
    if (!gpus.managed) {
      return CodeAndMessage{"NotPartitioned", "node(s) were not opted in to MIG partitioning"};
    }
    for (const SliceCount& s : cls.slices) {
      if (NodeHasProfile(t_.problem, node, s.slice)) continue;
      if (gpus.gpus.empty() && !gpus.problems.empty()) {
        return CodeAndMessage{"GpuProblem", "node(s) had no usable GPU: " + gpus.problems[0]};
      }
      return CodeAndMessage{"NoGpuForProfile", fmt::format("node(s) had no GPU that has profile {}",
                                                           ProfileText(t_.slice_names[s.slice]))};
    }
    return std::nullopt;
  }

  const Translation& t_;
  const StagedResult& result_;
  const scheduling::Framework& framework_;
  Draft before_, after_;
  std::vector<std::vector<scheduling::Verdict>> verdicts_;  // row x node
  std::vector<std::vector<bool>> had_room_, has_room_;      // shape x node
  std::vector<Device> devices_;
};

}  // namespace

std::vector<Explanation> ExplainWaiting(const Translation& translation, const StagedResult& result,
                                        const scheduling::Framework& framework, GpuStates& states) {
  return Explainer(translation, result, framework, states).Run();
}

Reason WhyNotPlanned(const cluster::Pod& pod) {
  if (scheduling::IsPending(pod) && scheduling::IsGated(pod)) {
    return {"SchedulingGated",
            fmt::format("waits for its scheduling gate {} to be lifted", pod.scheduling_gates[0]),
            0};
  }
  if (!pod.node_name.empty()) return {"NotPending", "is bound to node " + pod.node_name, 0};
  if (pod.meta.deleted) return {"NotPending", "is being deleted", 0};
  return {"NotPending", "is in phase " + pod.phase, 0};
}

}  // namespace nos::planning
