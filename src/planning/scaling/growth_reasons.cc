#include "planning/scaling/growth_reasons.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "planning/explanation/remedy.h"
#include "planning/explanation/wording.h"

namespace nos::planning {
namespace {

constexpr size_t kMaxText = 300;  // bytes of text from other components

}  // namespace

GrowthReasons::GrowthReasons(const GrowthWorld& world, const std::vector<NodePoolState>& pools,
                             const GreedyNodeMix& coverer, GpuStates& states,
                             const GrowthOutcome& outcome)
    : world_(world),
      pools_(pools),
      coverer_(coverer),
      outcome_(outcome),
      empty_(world.types.problem, states, Draft::Free::kKeep) {}

bool GrowthReasons::IsOfBrokenGang(int cls) const {
  const Problem& problem = world_.types.problem;
  const int gang = problem.classes[cls].gang;
  if (gang < 0) return false;
  int placed = 0;
  for (size_t c = 0; c < problem.classes.size(); ++c) {
    const PodClass& other = problem.classes[c];
    if (other.gang == gang && !other.extra) placed += outcome_.placed[c];
  }
  return placed < problem.gangs[gang].lacking;
}

std::string GrowthReasons::WhyTooSmall(int cls, int type) const {
  const int r = LackingDimension(empty_, cls, type);
  if (r < 0) return "its GPUs have no room for all its slices together";
  const cluster::ResourceId id = world_.types.dimensions[r];
  return fmt::format("{}: it asks for {}, and a node has {}", InsufficientText(id),
                     AmountText(id, world_.types.problem.classes[cls].requests[r]),
                     AmountText(id, empty_.FreeOf(type)[r]));
}

GrowthReasons::Verdict GrowthReasons::Ask(int cls, int type) const {
  const Translation& t = world_.types;
  const PodClass& c = t.problem.classes[cls];
  const NodeType& node = world_.node_types[type];
  const cluster::NodePool& pool = *pools_[node.pool].pool;
  if (!t.problem.allowed[c.allowed][type]) {
    const cluster::Pod& pod = *t.pending[t.row_pod[c.allowed]];
    return {Step::kRefused, VerdictNow(t.row_cycle[c.allowed], pod, *t.nodes[type]).message};
  }
  if (coverer_.Alone(cls, type) == 0) {
    for (const SliceCount& s : c.slices) {
      if (t.problem.nodes[type].slices_as_resources || NodeHasProfile(t.problem, type, s.slice)) {
        continue;
      }
      return {Step::kNoSlices,
              fmt::format("its GPUs cannot be cut into {}", ProfileText(t.slice_names[s.slice]))};
    }
    return {Step::kTooSmall, WhyTooSmall(cls, type)};
  }
  // kTooSmall, not kClosed or kFull: a group with maximum 0 never gets a node, so a pod that fits
  // only there must not keep other nodes from removal.
  if (pool.max == 0 && node.coming == 0) {
    return {Step::kTooSmall, "it is to have no nodes (spec.max is 0)"};
  }
  const std::string& closed = pools_[node.pool].closed;
  if (!closed.empty()) return {Step::kClosed, closed};
  if (outcome_.used[type] >= node.room) {
    return {Step::kFull, fmt::format("it has, or gets, all its {} nodes (spec.max)", pool.max)};
  }
  return {Step::kCould, ""};
}

LeftOut GrowthReasons::WhyLeftOut(int cls) {
  LeftOut left;
  Verdict best;
  int64_t best_price = 0;
  for (size_t t = 0; t < world_.node_types.size(); ++t) {
    const NodeType& type = world_.node_types[t];
    if (type.IsThere()) continue;
    Verdict verdict = Ask(cls, static_cast<int>(t));
    const bool nearer = left.nearest < 0 || verdict.step > best.step ||
                        (verdict.step == best.step && type.price < best_price);
    if (!nearer) continue;
    best = std::move(verdict);
    best_price = type.price;
    left.nearest = type.pool;
  }
  if (left.nearest < 0) {
    const auto bad = std::ranges::find_if(world_.problems, [](auto& why) { return !why.empty(); });
    left.reason = {"NoPools",
                   bad == world_.problems.end() ? "there is no node pool to add nodes to"
                                                : "no node pool can be planned with: " + *bad,
                   0};
    return left;
  }
  const std::string& pool = pools_[left.nearest].pool->meta.name;
  const std::string text = Shortened(best.text, kMaxText);
  const bool broken = IsOfBrokenGang(cls);
  const std::string gang =
      broken ? world_.types.gangs[world_.types.problem.classes[cls].gang]->name + ": " : "";
  if (best.step == Step::kClosed) {
    left.reason = {"PoolClosed", fmt::format("{}pool {} would serve it: {}", gang, pool, text), 0};
  } else if (best.step == Step::kFull) {
    left.reason = {"PoolsAtMaximum", fmt::format("{}pool {} would serve it: {}", gang, pool, text),
                   0};
  } else if (best.step < Step::kClosed) {
    left.reason = {
        "NoPoolFits",
        fmt::format("{}no pool has nodes for it; {} comes nearest: {}", gang, pool, text), 0};
  } else if (broken) {
    left.reason = {"GangNotWhole", gang + "new nodes cannot serve as many of its pods as it lacks",
                   0};
  } else if (!outcome_.in_time) {
    left.reason = {"SearchEnded", "there was no time to find new nodes for it", 0};
  } else {
    left.reason = {
        "NoPoolFits",
        fmt::format("new nodes of pool {} do not take it beside the others that wait", pool), 0};
  }
  return left;
}

}  // namespace nos::planning
