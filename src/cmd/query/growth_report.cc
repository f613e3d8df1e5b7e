#include "cmd/query/growth_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/table.h"
#include "cmd/query/pool_report.h"
#include "scheduling/pod_names.h"

namespace nos::cmd {
namespace {

using planning::GrowthPlan;
using planning::MovePlan;
using planning::NodePoolState;

// Removes pods for which `stays` returns false. Their gangs count them as placed.
template <typename Stays>
void KeepOnly(Stays stays, Unplaced& unplaced) {
  std::vector<int> place(unplaced.pods.size(), -1);
  std::vector<std::shared_ptr<const cluster::Pod>> left;
  for (size_t i = 0; i < place.size(); ++i) {
    if (!stays(i)) continue;
    place[i] = static_cast<int>(left.size());
    left.push_back(unplaced.pods[i]);
  }
  for (planning::Gang& gang : unplaced.gangs) {
    std::vector<int> members;
    for (const int member : gang.members) {
      if (place[member] >= 0) members.push_back(place[member]);
    }
    gang.placed += static_cast<int>(gang.members.size() - members.size());
    gang.members = std::move(members);
  }
  std::erase_if(unplaced.gangs, [](const planning::Gang& gang) {
    return gang.members.empty() || (gang.problem.empty() && gang.Lacking() <= 0);
  });
  unplaced.pods = std::move(left);
}

Json DevicesJson(const std::vector<planning::AssignedDevice>& devices) {
  JsonArray json;
  for (const planning::AssignedDevice& device : devices) {
    json.push_back(JsonObject{
        {"gpu", device.gpu}, {"profile", device.profile}, {"start", device.placement.start}});
  }
  return json;
}

JsonObject PodJson(const cluster::Pod& pod) {
  return JsonObject{{"namespace", pod.meta.ns}, {"name", pod.meta.name}};
}

// The nodes of a pool that hold certain pods; kThere: existing nodes.
struct Part {
  std::vector<std::string> pods;
  int nodes = 0;
};
constexpr int kThere = -1;
Part PartOf(const GrowthPlan& plan, int pool, const Unplaced& unplaced) {
  Part part;
  for (const planning::NewNode& node : plan.nodes) {
    if ((node.IsThere() ? kThere : node.pool) != pool) continue;
    ++part.nodes;
    for (const int pod : node.pods) part.pods.push_back(unplaced.pods[pod]->Key());
  }
  return part;
}

// The refused pods as entries of a list of pods that get nothing.
void AddRefused(const Unplaced& unplaced, JsonArray& list) {
  for (const planning::PodOutcome& refused : unplaced.refused) {
    JsonObject entry = PodJson(*refused.pod);
    entry["code"] = refused.reasons.front().code;
    entry["message"] = refused.reasons.front().message;
    list.push_back(std::move(entry));
  }
}

// For a report without pods to serve: " none, every pod has a place".
std::string NoneToServe(const Unplaced& unplaced) {
  const size_t refused = unplaced.refused.size();
  if (refused == 0) return " none, every pod has a place\n";
  return fmt::format(" none, {} without a place {}\n", refused == 1 ? "the pod" : "the pods",
                     refused == 1 ? "is refused by its quota" : "are refused by their quotas");
}

std::string NearestName(const planning::LeftOut& left, const std::vector<NodePoolState>& pools) {
  return left.nearest < 0 ? "" : pools[left.nearest].pool->meta.name;
}

// "ml/a moved to gpu-2 and ml/b to gpu-3"
std::string MovesText(const std::vector<planning::Move>& moves) {
  std::string text;
  for (size_t i = 0; i < moves.size(); ++i) {
    const std::string_view link = i == 0 ? "" : i + 1 == moves.size() ? " and " : ", ";
    text +=
        fmt::format("{}{}{} to {}", link, moves[i].pod->Key(), i == 0 ? " moved" : "", moves[i].to);
  }
  return text;
}

}  // namespace

Unplaced UnplacedOf(const controllers::AdmittedPlan& admitted, cluster::ClusterSnapshot snapshot) {
  const planning::Plan& plan = admitted.plan;
  Unplaced unplaced{std::move(snapshot), {}, admitted.gangs};
  std::set<std::string> planned;  // members of refused gangs are there, too
  for (const planning::PodOutcome& outcome : plan.pods) planned.insert(outcome.pod->Key());
  for (const planning::PodOutcome& outcome : admitted.refused) {
    if (!planned.contains(outcome.pod->Key())) unplaced.refused.push_back(outcome);
  }
  for (const planning::PodOutcome& outcome : plan.pods) {
    unplaced.pods.push_back(outcome.pod);
    if (!outcome.placed) continue;
    auto placed = std::make_shared<cluster::Pod>(*outcome.pod);
    for (const planning::AssignedDevice& device : outcome.devices) {
      placed->promised.push_back({device.gpu, device.placement, device.model});
    }
    (void)unplaced.snapshot.Bind(std::move(placed), outcome.node);  // the node exists
  }
  KeepOnly([&](size_t i) { return !plan.pods[i].placed; }, unplaced);
  return unplaced;
}

Unplaced StillUnplaced(const Unplaced& unplaced, const MovePlan& moves) {
  std::vector<bool> stays(unplaced.pods.size());
  for (const planning::NoMoveFound& other : moves.others) {
    stays[other.pod] = other.reason.code != planning::kCapacityAvailable;
  }
  Unplaced left{moves.after, unplaced.pods, unplaced.gangs, unplaced.refused};
  KeepOnly([&](size_t i) { return stays[i]; }, left);
  return left;
}

Unplaced Without(const std::set<std::string>& keys, Unplaced unplaced) {
  std::vector<bool> stays;
  for (const auto& pod : unplaced.pods) stays.push_back(!keys.contains(pod->Key()));
  KeepOnly([&](size_t i) { return stays[i]; }, unplaced);
  return unplaced;
}

Json GrowthToJson(const GrowthPlan& plan, const std::vector<NodePoolState>& pools,
                  const Unplaced& unplaced) {
  JsonArray each, nodes, left_out;
  for (size_t p = 0; p < pools.size(); ++p) {
    each.push_back(JsonObject{{"name", pools[p].pool->meta.name},
                              {"nodes", pools[p].nodes},
                              {"coming", pools[p].coming},
                              {"closed", pools[p].closed},
                              {"new", plan.pools[p].count},
                              {"problem", plan.pools[p].problem}});
  }
  for (const planning::NewNode& node : plan.nodes) {
    JsonArray pods;
    for (const int pod : node.pods) pods.push_back(PodJson(*unplaced.pods[pod]));
    nodes.push_back(JsonObject{{"name", node.name},
                               {"pool", node.IsThere() ? "" : pools[node.pool].pool->meta.name},
                               {"coming", node.coming},
                               {"pods", std::move(pods)}});
  }
  for (const planning::LeftOut& left : plan.left_out) {
    JsonObject entry = PodJson(*unplaced.pods[left.pod]);
    entry["code"] = left.reason.code;
    entry["message"] = left.reason.message;
    entry["nearestPool"] = NearestName(left, pools);
    left_out.push_back(std::move(entry));
  }
  AddRefused(unplaced, left_out);
  return JsonObject{{"pools", std::move(each)},
                    {"nodes", std::move(nodes)},
                    {"served", plan.served},
                    {"leftOut", std::move(left_out)},
                    {"pricePerHour", static_cast<double>(plan.milli_price) / 1000},
                    {"proven", plan.proven}};
}

std::string GrowthToText(const GrowthPlan& plan, const std::vector<NodePoolState>& pools,
                         const Unplaced& unplaced, size_t width) {
  if (unplaced.pods.empty()) return "\nNew nodes:" + NoneToServe(unplaced);
  if (pools.empty()) {
    return "\nNew nodes: no node pools found; create a NodePool for each kind of node that "
           "can\nbe added (docs/autoscaling.md), and dump them with: kubectl get "
           "nodes,pods,nospools -A -o yaml\n";
  }
  std::string text = fmt::format(
      "\nNew nodes: {} of {} pods without a place would run, for {} an hour{}\n", plan.served,
      unplaced.pods.size() + unplaced.refused.size(), PriceText(plan.milli_price),
      plan.proven ? "" : "; not proven to be the cheapest");
  TextTable table({"POOL", "NODES", "COMING", "NEW", "PRICE/H", "PODS"});
  std::string problems;
  for (size_t p = 0; p < pools.size(); ++p) {
    const cluster::NodePool& pool = *pools[p].pool;
    const planning::PoolGrowth& growth = plan.pools[p];
    if (!growth.problem.empty()) problems += "  " + Printable(growth.problem) + "\n";
    const Part part = PartOf(plan, static_cast<int>(p), unplaced);
    if (growth.count == 0 && part.pods.empty()) continue;
    table.AddRow({pool.meta.name, fmt::to_string(pools[p].nodes), fmt::to_string(pools[p].coming),
                  fmt::to_string(growth.count),
                  PriceText(growth.count * cluster::MilliPriceOf(pool)),
                  scheduling::NamesOf(part.pods, "")});
  }
  const Part there = PartOf(plan, kThere, unplaced);
  if (there.nodes > 0) {
    table.AddRow({"(there)", fmt::to_string(there.nodes), "-", "-", "-",
                  scheduling::NamesOf(there.pods, "")});
  }
  if (!table.empty()) text += table.ToString(width);
  TextTable left_out({"STILL WAITING", "NEAREST", "WHY"});
  for (const planning::LeftOut& left : plan.left_out) {
    const std::string nearest = NearestName(left, pools);
    left_out.AddRow(
        {unplaced.pods[left.pod]->Key(), nearest.empty() ? "-" : nearest, left.reason.message});
  }
  for (const planning::PodOutcome& refused : unplaced.refused) {
    left_out.AddRow({refused.pod->Key(), "-", refused.reasons.front().message});
  }
  if (!left_out.empty()) text += "\n" + left_out.ToString(width);
  if (!problems.empty()) text += "\nignored pools:\n" + problems;
  return text;
}

Json MovesToJson(const MovePlan& plan, const Unplaced& unplaced) {
  JsonArray reliefs, others;
  for (const planning::PodMoves& pod_moves : plan.pod_moves) {
    JsonObject entry = PodJson(*unplaced.pods[pod_moves.pod]);
    entry["node"] = pod_moves.node;
    entry["devices"] = DevicesJson(pod_moves.devices);
    JsonArray moves;
    for (const planning::Move& move : pod_moves.moves) {
      JsonObject moved = PodJson(*move.pod);
      moved["from"] = move.from;
      moved["to"] = move.to;
      moved["devices"] = DevicesJson(move.devices);
      moves.push_back(std::move(moved));
    }
    entry["moves"] = std::move(moves);
    reliefs.push_back(std::move(entry));
  }
  for (const planning::NoMoveFound& other : plan.others) {
    JsonObject entry = PodJson(*unplaced.pods[other.pod]);
    entry["code"] = other.reason.code;
    entry["message"] = other.reason.message;
    others.push_back(std::move(entry));
  }
  AddRefused(unplaced, others);
  return JsonObject{{"reliefs", std::move(reliefs)}, {"others", std::move(others)}};
}

std::string MovesToText(const MovePlan& plan, const Unplaced& unplaced, size_t width) {
  if (unplaced.pods.empty()) return "\nMoves:" + NoneToServe(unplaced);
  std::string text = "\nMoves:";
  if (plan.pod_moves.empty()) text += " none would help";
  text += "\n";
  for (const planning::PodMoves& pod_moves : plan.pod_moves) {
    text += Printable(fmt::format("  {} could run on {} if {}", unplaced.pods[pod_moves.pod]->Key(),
                                  pod_moves.node, MovesText(pod_moves.moves))) +
            "\n";
  }
  TextTable others({"NOT MOVED FOR", "WHY"});
  for (const planning::NoMoveFound& other : plan.others) {
    others.AddRow({unplaced.pods[other.pod]->Key(), other.reason.message});
  }
  for (const planning::PodOutcome& refused : unplaced.refused) {
    others.AddRow({refused.pod->Key(), refused.reasons.front().message});
  }
  if (!others.empty()) text += "\n" + others.ToString(width);
  return text;
}

}  // namespace nos::cmd
