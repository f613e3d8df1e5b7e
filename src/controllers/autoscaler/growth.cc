// Finds the pending pods that existing nodes cannot run, and requests nodes for them from the
// pools.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controllers/autoscaler/internal.h"
#include "planning/pool_nodes.h"
#include "scheduling/pod_kind.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

constexpr Duration kMinRest = std::chrono::seconds(1), kMaxRest = std::chrono::minutes(1);
constexpr std::string_view kCordon = "node.kubernetes.io/unschedulable";
constexpr size_t kMaxNamed = 20;  // pods named in one decision

// True if a scheduler has found the pod unschedulable and no other controller decides where it
// runs.
bool WaitsForRoom(const cluster::Pod& pod) {
  if (!scheduling::IsPlannable(pod)) return false;
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  return scheduled != nullptr && scheduled->status == "False" &&
         scheduled->reason == "Unschedulable";
}

// True if the pod stays out for a reason that free capacity on existing nodes could resolve. A node
// that is idle now is then worth keeping.
bool MayBeHelpedByRoom(std::string_view code) {
  return code == "PoolClosed" || code == "PoolsAtMaximum" || code == "GangNotWhole" ||
         code == "SearchEnded";
}

// Binds a copy of the pod in the snapshot without its own node name: the pod does not run yet, so
// it must not be taken for one that can be moved.
void BindPlanned(const planning::PodOutcome& outcome, cluster::ClusterSnapshot& picture) {
  auto bound = std::make_shared<cluster::Pod>(*outcome.pod);
  bound->promised.clear();
  for (const planning::AssignedDevice& device : outcome.devices) {
    bound->promised.push_back({device.gpu, device.placement, device.model});
  }
  // Cannot fail: the plan only uses nodes of the snapshot.
  (void)picture.Bind(std::move(bound), outcome.node);
}

std::shared_ptr<const cluster::Node> Uncordoned(const cluster::Node& node) {
  auto open = std::make_shared<cluster::Node>(node);
  open->unschedulable = false;
  std::erase_if(open->taints, [](const cluster::Taint& taint) { return taint.key == kCordon; });
  return open;
}

// Pods that get new nodes, as indices.
struct NewComers {
  std::set<int> asked;
  std::set<int> failed;  // pods whose pool could not be asked

  // True if `pods` contains a member of the pod's gang.
  static bool Has(const std::set<int>& pods, int pod, const std::vector<planning::Gang>& gangs) {
    return std::ranges::any_of(gangs, [&](const planning::Gang& gang) {
      return std::ranges::find(gang.members, pod) != gang.members.end() &&
             std::ranges::any_of(gang.members, [&](int member) { return pods.contains(member); });
    });
  }
};

void Name(const cluster::Pod& pod, std::vector<std::string>& pods) {
  if (pods.size() < kMaxNamed) pods.push_back(pod.Key());
}

}  // namespace

Unserved Without(const Unserved& all, const std::set<int>& gone) {
  Unserved left;
  std::vector<int> place(all.pods.size(), -1);  // new index by old index
  for (size_t i = 0; i < all.pods.size(); ++i) {
    if (gone.contains(static_cast<int>(i))) continue;
    place[i] = static_cast<int>(left.pods.size());
    left.pods.push_back(all.pods[i]);
  }
  for (planning::Gang gang : all.gangs) {
    const size_t before = gang.members.size();
    std::erase_if(gang.members, [&](int member) { return place[member] < 0; });
    gang.placed += static_cast<int>(before - gang.members.size());
    for (int& member : gang.members) member = place[member];
    const bool has_enough = gang.problem.empty() && gang.Lacking() <= 0;
    if (!has_enough && !gang.members.empty()) left.gangs.push_back(std::move(gang));
  }
  return left;
}

std::function<bool()> Autoscaler::Impl::TimeLimit(const Look& look) const {
  return [&look, begin = look.clock.Now(), budget = config_.plan_budget] {
    return look.clock.Now() - begin >= budget;
  };
}

void Autoscaler::Impl::Decide(Look& look) {
  const Time begin = look.clock.Now();
  pods_version_ = look.view.pods.Version();
  nodes_version_ = look.view.nodes.Version();
  around_version_ = look.view.around->Version();
  decide_by_ = begin + config_.read_again;
  // 1. Find the pending pods that existing nodes cannot run. The snapshot then contains the pods
  //    that they can run.
  const Demand demand = DemandOf(look);
  planning::PlanOptions options;
  options.objective = config_.objective;
  options.now = begin;
  options.out_of_time = TimeLimit(look);
  cluster::ClusterSnapshot picture = Picture(look, demand);
  Unserved unserved = FindUnserved(look, demand, options, picture);
  if (metrics_ != nullptr) {
    metrics_->Set(kUnservedPods, {}, static_cast<double>(unserved.pods.size()));
  }
  // 2. Cancel removals first: a node that stays is available at once. Everything
  //    else is then decided again with this node.
  if (CallOffFor(look, unserved, options, picture)) {
    DecideBy(begin);
  } else {
    // 3. Move pods before requesting nodes: freed capacity is cheaper than a new node.
    PlanMovesFor(look, demand, options, unserved, picture);
    // 4. Request nodes for the remaining pods.
    const bool all_served = Grow(look, unserved, options, picture);
    // 5. Drain idle nodes only if no pending pod could use them. Otherwise their stabilisation
    //    starts over.
    if (!all_served) could_go_.clear();
    if (all_served && !demand.unsettled) Shrink(look, demand, picture);
  }
  // 6. Pause for a multiple of the time spent, so that decisions use a bounded share of the time.
  const Time end = look.clock.Now();
  if (metrics_ != nullptr) metrics_->Observe(kScalingPlan, {}, end - begin);
  rest_until_ = end + std::clamp<Duration>(10 * (end - begin), kMinRest, kMaxRest);
}

// Uses the earlier of the condition's transition time and the first time this process saw the pod.
// A restart therefore does not restart the wait, and a clock that is ahead does not prolong it.
Time Autoscaler::Impl::WaitingSince(const cluster::Pod& pod, Time now) {
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  const bool told = scheduled != nullptr && scheduled->last_transition != Time{};
  const Time since = told ? scheduled->last_transition : pod.meta.created;
  const Time seen = first_seen_.try_emplace(pod.Key() + "/" + pod.meta.uid, now).first->second;
  return std::min(since, seen);
}

Autoscaler::Impl::Demand Autoscaler::Impl::DemandOf(Look& look) {
  Demand demand;
  const auto busy = relocations_.Busy(look.view);
  demand.busy = {busy.begin(), busy.end()};
  std::vector<Pod> settled, others;
  std::set<std::string> waiting, keys;
  const auto all = look.view.pods.Snapshot();
  for (const Pod& pod : *all) {
    // In other namespaces any user may have set these labels.
    if (pod->meta.ns == config_.signal.ns && IsDemand(*pod)) continue;
    demand.all.push_back(pod);
    const bool is_place = pod->meta.ns == config_.relocations.ns && IsPlaceholder(*pod);
    if (is_place && scheduling::IsPending(*pod)) demand.placeholders_wait = true;
    if (is_place && !pod->node_name.empty()) demand.held.insert(pod->node_name);
    if (!is_place) others.push_back(pod);
    if (is_place || !WaitsForRoom(*pod)) continue;
    const std::string key = pod->Key();
    const Time since = WaitingSince(*pod, look.now);
    waiting.insert(key + "/" + pod->meta.uid);
    keys.insert(key);
    if (demand.busy.contains(key)) {
      Judge(*pod, {kScalingCondition, "True", "Moving", "other pods move to make room for it"},
            look.now);
    } else if (look.now - since < config_.settle) {
      demand.unsettled = true;
      DecideBy(since + config_.settle);
    } else {
      settled.push_back(pod);
    }
  }
  std::erase_if(first_seen_, [&](const auto& item) { return !waiting.contains(item.first); });
  std::erase_if(in_vain_, [&](const std::string& key) { return !keys.contains(key); });
  const SliceReservations none{kube::BackOff{}};
  demand.waiting = WithGangs(std::move(settled), others, around_, none, look.now);
  return demand;
}

// Leaves out nodes that are still starting: they count as coming.
cluster::ClusterSnapshot Autoscaler::Impl::Picture(const Look& look, const Demand& demand) const {
  std::vector<Node> nodes;
  for (const Node& node : look.nodes) {
    if (!look.starting.contains(node->meta.name)) nodes.push_back(node);
  }
  auto picture = cluster::ClusterSnapshot::Build(nodes, demand.all, catalogue_);
  picture.ChangeContext() = around_;
  for (size_t i = 0; i < picture.size(); ++i) {
    const cluster::NodeInfo& info = picture.node(i);
    cluster::NodeGpus gpus = info.gpus;
    bool unknown = false;
    for (cluster::Gpu& gpu : gpus.gpus) {
      if (gpu.reported || gpu.fixed) continue;
      gpu.fixed = unknown = true;  // no agent has reported this GPU, so its instances are unknown
    }
    if (!unknown) continue;
    const std::string name = info.node->meta.name;
    (void)picture.SetGpus(name, std::move(gpus));  // cannot fail: the node is in the snapshot
  }
  return picture;
}

// Pods that the plan places are bound in `picture`.
Unserved Autoscaler::Impl::FindUnserved(Look& look, const Demand& demand,
                                        const planning::PlanOptions& options,
                                        cluster::ClusterSnapshot& picture) {
  GangedPods admitted = demand.waiting;
  refused_ = LeaveOutRefused(admitted, demand.all, picture, around_, frameworks_, in_vain_);
  for (const auto& [pod, refusal] : refused_) {
    Judge(*pod, {kScalingCondition, "False", std::string(kRefusedByQuota), refusal.Text()},
          look.now);
  }
  if (admitted.pods.empty()) return {};
  planning::PlanOptions own = options;
  own.gangs = admitted.gangs;
  const planning::Plan plan = planning::MakePlan(picture, admitted.pods, frameworks_, own);
  std::set<int> placed;
  for (size_t i = 0; i < plan.pods.size(); ++i) {
    const planning::PodOutcome& outcome = plan.pods[i];
    if (!outcome.placed) continue;
    placed.insert(static_cast<int>(i));
    BindPlanned(outcome, picture);
    look.filled.insert(outcome.node);
    if (outcome.pod->FindCondition(kScalingCondition) == nullptr) continue;
    Judge(*outcome.pod,
          {kScalingCondition, "False", "HasRoom", "the nodes that there are have room for it"},
          look.now);
  }
  return Without({std::move(admitted.pods), std::move(admitted.gangs)}, placed);
}

// Cancels the removal of nodes that pending pods need. Returns true if a node stays.
bool Autoscaler::Impl::CallOffFor(Look& look, const Unserved& unserved,
                                  planning::PlanOptions options,
                                  const cluster::ClusterSnapshot& picture) {
  if (unserved.pods.empty()) return false;
  cluster::ClusterSnapshot open = picture;
  std::map<std::string, Node> leaving;
  for (const Node& node : look.nodes) {
    const auto removal = look.removals.find(node->meta.name);
    if (removal == look.removals.end() || node->meta.deleted) continue;
    const Pool* pool = look.Find(removal->second.pool);
    const bool asked = removal->second.state == Removal::State::kAsked;
    const bool may_be_told =
        asked && (pool == nullptr || !pool->known->fresh || IsTold(removal->second, *pool->known));
    if (may_be_told) continue;
    leaving[node->meta.name] = node;
    open.SetNode(Uncordoned(*node));
  }
  if (leaving.empty()) return false;
  options.gangs = unserved.gangs;
  const planning::Plan plan = planning::MakePlan(open, unserved.pods, frameworks_, options);
  std::set<std::string> needed;
  for (const planning::PodOutcome& outcome : plan.pods) {
    if (outcome.placed && leaving.contains(outcome.node)) needed.insert(outcome.node);
  }
  bool stays = false;
  const std::string why = "pods that wait have room there";
  for (const std::string& name : needed) {
    const Removal& removal = look.removals.at(name);
    const Pool* pool = look.Find(removal.pool);
    if (removal.state == Removal::State::kEmptying) {
      stays |= relocations_.CallOff(name, why, look.view, look.client, look.now);
      continue;
    }
    const Status kept = Keep(look, pool == nullptr ? nullptr : pool->pool, leaving[name], why);
    stays |= kept.ok() || kept.code() == Code::kConflict;
  }
  TakeNotes(look);
  return stays;
}

// Returns true if no pending pod is left that could use an idle node.
bool Autoscaler::Impl::Grow(Look& look, const Unserved& unserved, planning::PlanOptions options,
                            const cluster::ClusterSnapshot& picture) {
  std::vector<planning::NodePoolState> now;
  now.reserve(look.pools.size());
  for (const Pool& pool : look.pools) now.push_back(pool.state.now);
  options.gangs = unserved.gangs;
  // A fresh time limit: the search on existing nodes may have used up the first one.
  options.out_of_time = TimeLimit(look);
  const planning::GrowthPlan plan =
      planning::PlanGrowth(picture, unserved.pods, now, frameworks_, options);
  std::vector<std::vector<std::string>> pods(now.size());
  std::vector<int> used(now.size());  // nodes of the plan that are already coming
  for (const planning::NewNode& node : plan.nodes) {
    if (node.IsThere()) {
      look.filled.insert(node.name);  // not removed: the plan places pods here
      continue;
    }
    const auto p = static_cast<size_t>(node.pool);
    if (node.coming) ++used[p];
    for (const int pod : node.pods) Name(*unserved.pods[static_cast<size_t>(pod)], pods[p]);
  }
  bool all_served = plan.nodes.empty();
  std::set<int> failed;
  for (size_t p = 0; p < now.size(); ++p) {
    Pool& pool = look.pools[p];
    const int count = plan.pools[p].count;
    if (pool.pool->signal != cluster::PoolSignal::kNone) {
      AskBySignal(look, pool, std::min(used[p], now[p].coming), count, pods[p]);
    } else if (count > 0 && !AskFor(look, pool, count, pods[p])) {
      failed.insert(static_cast<int>(p));
      DecideBy(look.now);
    }
    all_served &= count == 0;
  }
  TellServed(look, unserved, plan, failed);
  for (const planning::LeftOut& left : plan.left_out) {
    all_served &= !MayBeHelpedByRoom(left.reason.code);
    Judge(*unserved.pods[static_cast<size_t>(left.pod)],
          {kScalingCondition, "False", left.reason.code, left.reason.message}, look.now);
  }
  NoteInVain(unserved, plan);
  return all_served;
}

// `failed`: indices of pools that could not be asked.
void Autoscaler::Impl::TellServed(Look& look, const Unserved& unserved,
                                  const planning::GrowthPlan& plan, const std::set<int>& failed) {
  const auto tell = [&](int pod, const char* status, const char* reason, std::string message) {
    Judge(*unserved.pods[static_cast<size_t>(pod)],
          {kScalingCondition, status, reason, std::move(message)}, look.now);
  };
  NewComers comers;
  for (const planning::NewNode& node : plan.nodes) {
    if (node.IsThere()) continue;
    const bool is_asked = node.coming || !failed.contains(node.pool);
    (is_asked ? comers.asked : comers.failed).insert(node.pods.begin(), node.pods.end());
    if (!is_asked) continue;
    const std::string& name = look.pools[static_cast<size_t>(node.pool)].pool->meta.name;
    for (const int pod : node.pods) {
      tell(pod, "True", "NodesComing", fmt::format("a node of pool {} is on its way for it", name));
    }
  }
  for (const planning::NewNode& node : plan.nodes) {
    if (!node.IsThere()) continue;
    for (const int pod : node.pods) {
      if (NewComers::Has(comers.failed, pod, unserved.gangs)) continue;
      if (NewComers::Has(comers.asked, pod, unserved.gangs)) {
        tell(pod, "True", "NodesComing",
             fmt::format("node {} has room for it, and nodes for the rest of its group are on "
                         "their way",
                         node.name));
      } else {
        tell(pod, "False", "HasRoom", "the nodes that there are have room for it");
      }
    }
  }
}

// Pods that no plan can help must not use up quota that other pods need.
void Autoscaler::Impl::NoteInVain(const Unserved& unserved, const planning::GrowthPlan& plan) {
  std::set<std::string> kinds;
  const auto kind_of = [](const cluster::Pod& pod) {
    return pod.meta.ns + " " + scheduling::KindOf(pod);
  };
  std::set<std::string> refused;
  for (const auto& [pod, refusal] : refused_) refused.insert(pod->Key());
  bool fresh = false;
  for (const planning::LeftOut& left : plan.left_out) {
    const cluster::Pod& pod = *unserved.pods[static_cast<size_t>(left.pod)];
    // The pods of a refused gang are still listed here so that their reason can be reported.
    if (refused.contains(pod.Key())) continue;
    fresh |= in_vain_.insert(pod.Key()).second;
    if (!refused_.empty()) kinds.insert(kind_of(pod));
  }
  for (const auto& [pod, refusal] : refused_) {
    if (kinds.contains(kind_of(*pod))) in_vain_.insert(pod->Key());
  }
  if (fresh && !refused_.empty()) decide_by_ = Time{};  // as soon as rest_until_ allows
}

bool Autoscaler::Impl::AskFor(Look& look, Pool& pool, int count,
                              const std::vector<std::string>& pods) {
  if (!pool.known->MayWrite() || !pool.known->scale) return false;
  const int32_t before = pool.known->scale->wanted;
  const int32_t wanted = std::min(before + count, std::max(pool.pool->max, before));
  if (wanted == before) return true;
  const Status written = WriteScale(look, pool, wanted, {});
  if (!written.ok()) {
    Log(LogLevel::kWarn, "failed to request nodes from NodePool",
        {{"pool", pool.pool->meta.name}, {"error", written.ToString()}});
    return false;
  }
  pool.known->grown = look.now;
  const std::string message =
      fmt::format("Scaling up to {} Nodes from {}: {}", wanted, before,
                  pods.empty() ? std::string("minimum of the pool (spec.min)")
                               : fmt::format("for {}{}", Join(pods, ", "),
                                             pods.size() < kMaxNamed ? "" : " and perhaps more"));
  telling_.Say({ReferenceTo(*pool.pool), kube::EventType::kNormal, "ScaledUp", message});
  Record({.action = "grow",
          .pool = pool.pool->meta.name,
          .count = wanted - before,
          .pods = pods,
          .message = fmt::format("pool {}: {}", pool.pool->meta.name, message)},
         look.now);
  return true;
}

// The requested count may be reduced as long as the nodes have not been created.
void Autoscaler::Impl::AskBySignal(Look& look, Pool& pool, int used, int count,
                                   const std::vector<std::string>& pods) {
  PoolStatus& status = pool.state.status;
  const int32_t before = status.wanted;
  const int32_t wanted = pool.nodes.there + std::max(pool.nodes.starting, used) + count;
  if (wanted == before) return;
  const int32_t present = pool.nodes.Present();
  if (wanted <= present && pool.nodes.starting == 0) status.asked.reset();
  if (wanted > present && (wanted > before || !status.asked)) status.asked = look.now;
  status.wanted = wanted;
  const Status written = WriteStatus(look, pool);
  if (!written.ok()) {
    status.wanted = before;
    Log(LogLevel::kWarn, "failed to update status of NodePool",
        {{"pool", pool.pool->meta.name}, {"error", written.ToString()}});
    return;
  }
  if (wanted <= std::max(before, present)) return;
  pool.known->grown = look.now;
  const std::string message = fmt::format("Requesting {} Nodes for {}", wanted - present,
                                          pods.empty() ? "spec.min" : Join(pods, ", "));
  telling_.Say({ReferenceTo(*pool.pool), kube::EventType::kNormal, "ScaledUp", message});
  Record({.action = "grow",
          .pool = pool.pool->meta.name,
          .count = wanted - std::max(before, present),
          .pods = pods,
          .message = fmt::format("pool {}: {}", pool.pool->meta.name, message)},
         look.now);
}

}  // namespace nos::controllers
