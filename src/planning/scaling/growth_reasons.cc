#include "planning/scaling/growth_reasons.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "planning/explanation/shortfalls.h"
#include "planning/explanation/wording.h"

namespace nos::planning {
namespace {

namespace codes = scheduling::codes;

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

std::optional<Reason> GrowthReasons::WhyGangNotWhole(int cls) const {
  const Problem& problem = world_.types.problem;
  const int number = problem.classes[cls].gang;
  if (number < 0) return std::nullopt;
  int placed = 0;
  for (size_t c = 0; c < problem.classes.size(); ++c) {
    const PodClass& other = problem.classes[c];
    if (other.gang == number && !other.extra) placed += outcome_.placed[c];
  }
  if (placed >= problem.gangs[number].lacking) return std::nullopt;
  const Gang& gang = *world_.types.gangs[number];
  return scheduling::GangNotWhole(gang.name,
                                  static_cast<size_t>(gang.placed) + static_cast<size_t>(placed),
                                  static_cast<size_t>(gang.least));
}

std::string GrowthReasons::WhyTooSmall(int cls, int type) const {
  const int r = LackingDimension(empty_, cls, type);
  if (r < 0) return "its GPUs have no room for all its slices together";
  const cluster::ResourceId id = world_.types.dimensions[r];
  const std::string& name = cluster::ResourceName(id);
  return fmt::format("{}: it requests {}, and a node has {}", scheduling::Insufficient(id).message,
                     scheduling::AmountText(name, world_.types.problem.classes[cls].requests[r]),
                     scheduling::AmountText(name, empty_.FreeOf(type)[r]));
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
              scheduling::NotPartitionable("its GPUs cannot", t.slice_names[s.slice])};
    }
    return {Step::kTooSmall, WhyTooSmall(cls, type)};
  }
  // kTooSmall, not kClosed or kFull: a group with maximum 0 never gets a node, so a pod that fits
  // only there must not keep other nodes from removal.
  if (pool.max == 0 && node.coming == 0) {
    return {Step::kTooSmall, "its maximum is 0 nodes (spec.max)"};
  }
  const std::string& closed = pools_[node.pool].closed;
  if (!closed.empty()) return {Step::kClosed, closed};
  if (outcome_.used[type] >= node.room) {
    return {Step::kFull,
            fmt::format("it has, or gets, its maximum of {} nodes (spec.max)", pool.max)};
  }
  return {Step::kCould, ""};
}

Reason GrowthReasons::ReasonFor(int cls, const Verdict& best, const std::string& pool) const {
  const std::string text = Shortened(best.text, kMaxText);
  const std::optional<Reason> not_whole = WhyGangNotWhole(cls);
  const std::string gang =
      not_whole ? world_.types.gangs[world_.types.problem.classes[cls].gang]->name + ": " : "";
  if (best.step == Step::kClosed || best.step == Step::kFull) {
    return {best.step == Step::kClosed ? codes::kPoolClosed : codes::kPoolsAtMaximum,
            fmt::format("{}pool {} would serve it: {}", gang, pool, text)};
  }
  if (best.step < Step::kClosed) {
    return {codes::kNoPoolFits,
            fmt::format("{}no pool has nodes for it; the nearest is {}: {}", gang, pool, text)};
  }
  if (not_whole) return *not_whole;
  if (!outcome_.in_time) {
    return {codes::kSearchEnded, "there was no time to find new nodes for it"};
  }
  return {codes::kNoPoolFits,
          fmt::format("new nodes of pool {} cannot serve it beside the other pending pods", pool)};
}

LeftOut GrowthReasons::WhyLeftOut(int cls) const {
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
    left.reason = {codes::kNoPools, bad == world_.problems.end()
                                        ? "there is no node pool to add nodes to"
                                        : "no node pool can be planned with: " + *bad};
    return left;
  }
  const auto no_model =
      DemandOf(world_.types, world_.types.problem.classes[cls]).NoModelHasProfile();
  left.reason = no_model ? *no_model : ReasonFor(cls, best, pools_[left.nearest].pool->meta.name);
  return left;
}

}  // namespace nos::planning
