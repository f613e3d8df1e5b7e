#include "study/scaling/nos_scaler.h"

#include <fmt/format.h>

#include "scheduling/framework.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "cluster/snapshot.h"
#include "gpu/modes.h"
#include "planning/growth.h"
#include "planning/moves.h"
#include "planning/planner.h"
#include "planning/pool_nodes.h"
#include "planning/shrink.h"

namespace nos::study {
namespace {

using PodPtr = std::shared_ptr<const cluster::Pod>;

// Seconds. A plan is made when no job has arrived for kSettle, at the latest kAtMost after the
// first arrival, and at most once per kBetween.
constexpr double kSettle = 10, kAtMost = 60, kBetween = 10;
constexpr double kBetweenShrinks = 60;
constexpr double kMaxUse = 0.5;  // share in use up to which a node may be emptied
constexpr int kMaxEmptied = 3;   // nodes at a time, as in the autoscaler
// Number of out_of_time calls per plan; a clock would give different results on each machine.
constexpr int kMaxAsks = 2000;

Time TimeAt(double seconds) {
  return Time{} + std::chrono::hours(1000) +
         std::chrono::milliseconds(static_cast<int64_t>(std::llround(1000 * seconds)));
}

std::function<bool()> Patience() {
  return [asks = 0]() mutable { return ++asks > kMaxAsks; };
}

PodPtr PodOf(const ScalingJob& job, int number) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = "jobs";
  pod->meta.name = fmt::format("job-{:07}", number);
  pod->meta.created = TimeAt(job.arrival);
  pod->meta.annotations[std::string(planning::kMovable)] = "true";
  pod->phase = "Pending";
  cluster::Container& container = pod->containers.emplace_back();
  container.requests = {{"cpu", Quantity::FromMilli(job.cpu_milli)},
                        {"memory", Quantity::FromValue(job.memory_mib << 20)}};
  if (job.slice.empty()) {
    container.requests[std::string(gpu::kWholeGpu)] = Quantity::FromValue(job.gpus);
  } else {
    const gpu::Profile& profile = ScalingProfile(job.slice);
    container.requests[profile.resource_name] = Quantity::FromValue(1);
  }
  return pod;
}

std::shared_ptr<const cluster::NodePool> NodePoolOf(const ScalingPool& pool) {
  auto made = std::make_shared<cluster::NodePool>();
  made->meta.name = pool.name;
  made->gpu.model = ScalingModel().name();
  made->gpu.count = pool.gpus;
  made->gpu.partitioning = cluster::SharingMode::kHybrid;
  made->resources = {{"cpu", Quantity::FromMilli(pool.cpu_milli)},
                     {"memory", Quantity::FromValue(pool.memory_mib << 20)},
                     {"pods", Quantity::FromValue(110)}};
  made->labels = made->node_selector = {{"pool", pool.name}};
  made->max = pool.max;
  made->price = Quantity::FromValue(pool.gpus);
  return made;
}

std::string NameOf(int node) { return fmt::format("node-{:06}", node); }

// A node without jobs, or in little use.
struct Quiet {
  bool empty = true;
  double since = 0;
};

class NosScaler : public Scaler {
 public:
  NosScaler(Stage& stage, const NosScalerOptions& options) : stage_(stage), options_(options) {
    snapshot_ = cluster::ClusterSnapshot::Build({}, {}, gpu::Catalogue::Builtin());
    snapshot_.ChangeContext();  // no PodDisruptionBudgets exist
    for (const ScalingPool& pool : stage.options().pools) pools_.push_back(NodePoolOf(pool));
  }

  // Places an arriving job at once if it fits, as the scheduler does.
  Status Arrived(int job) override {
    PodPtr pod = PodOf(stage_.job(job), job);
    job_of_[pod->Key()] = job;
    pods_[job] = std::move(pod);
    NOS_ASSIGN(const std::vector<int> left, Place({job}));
    if (left.empty()) return Status::Ok();
    last_arrival_ = stage_.now();
    // Changes before this arrival do not make the plan urgent.
    if (stage_.waiting().size() <= 1) changed_since_.reset();
    Changed();
    return Status::Ok();
  }

  Status Ended(int job, int node) override {
    NOS_RETURN_IF_ERROR(snapshot_.Vacate(*pods_[job], NameOf(node)).status());
    job_of_.erase(pods_[job]->Key());
    pods_.erase(job);
    Touch(node);
    Changed();
    return Status::Ok();
  }

  Status Ready(int node) override {
    NOS_ASSIGN(const auto made, planning::NewNodeOf(*pools_[stage_.nodes()[node].pool], node,
                                                    snapshot_.catalogue()));
    auto named = std::make_shared<cluster::Node>(*made);
    named->meta.name = named->meta.labels["kubernetes.io/hostname"] = NameOf(node);
    node_of_[NameOf(node)] = node;
    snapshot_.AddNodes({std::move(named)});
    Touch(node);
    Changed();
    return Status::Ok();
  }

  std::optional<double> NextLook() const override {
    const std::optional<double> plan = NextPlan(), shrink = NextShrink();
    return plan && shrink ? std::min(plan, shrink) : plan ? plan : shrink;
  }

  Status Look() override {
    const double now = stage_.now();
    // 1. Place pending jobs before removing nodes, because they may need them.
    if (const auto plan = NextPlan(); plan && *plan <= now) {
      NOS_RETURN_IF_ERROR(PlanForWaiting());
    }
    // 2. Remove nodes that are due.
    const auto shrink = NextShrink();
    if (!shrink || *shrink > now) return Status::Ok();
    last_shrink_ = now;
    shrinkable_since_.reset();
    return options_.scale_down ? Shrink() : RemoveEmpty();
  }

 private:
  void Changed() {
    if (!changed_since_) changed_since_ = stage_.now();
    Shrinkable();
  }
  void Shrinkable() {
    if (!shrinkable_since_) shrinkable_since_ = stage_.now();
  }

  std::optional<double> NextPlan() const {
    if (!changed_since_ || stage_.waiting().empty()) return std::nullopt;
    const double settled =
        std::min(std::max(last_arrival_ + kSettle, *changed_since_), *changed_since_ + kAtMost);
    return std::max(settled, last_plan_ + kBetween);
  }
  // When the next node is due, and when something has changed, because then other nodes may be
  // removable.
  std::optional<double> NextShrink() const {
    std::optional<double> next;
    const auto at = [&](double when) { next = std::min(next.value_or(when), when); };
    for (const auto& [node, quiet] : quiet_) {
      if (const auto due = DueOf(node); due && *due > last_shrink_) at(*due);
    }
    if (shrinkable_since_ && !quiet_.empty()) {
      at(std::max(*shrinkable_since_, last_shrink_ + kBetweenShrinks));
    }
    return next;
  }
  // Start of the uninterrupted time in which the node could have been removed, as far as known. An
  // empty node always could.
  std::optional<double> CouldGoSince(int node) const {
    if (const auto known = could_go_.find(node); known != could_go_.end()) return known->second;
    const auto quiet = quiet_.find(node);
    if (quiet == quiet_.end() || !quiet->second.empty) return std::nullopt;
    return quiet->second.since;
  }
  // When the node is removed: as in the autoscaler, not soon after any pool has grown.
  std::optional<double> DueOf(int node) const {
    const auto since = CouldGoSince(node);
    if (!since) return std::nullopt;
    return std::max(*since, grown_) + options_.window;
  }

  planning::PlanOptions OptionsNow() const {
    planning::PlanOptions options;
    options.now = TimeAt(stage_.now());
    options.out_of_time = Patience();
    return options;
  }
  std::vector<PodPtr> PodsOf(const std::vector<int>& jobs) const {
    std::vector<PodPtr> pods;
    pods.reserve(jobs.size());
    for (const int job : jobs) pods.push_back(pods_.at(job));
    return pods;
  }

  // Returns the jobs without a place.
  Result<std::vector<int>> Place(const std::vector<int>& jobs) {
    if (snapshot_.size() == 0) return jobs;
    const planning::Plan plan =
        planning::MakePlan(snapshot_, PodsOf(jobs), framework_, OptionsNow());
    std::vector<int> left;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const planning::PodOutcome& outcome = plan.pods[i];
      if (!outcome.placed) {
        left.push_back(jobs[i]);
        continue;
      }
      NOS_RETURN_IF_ERROR(Bind(jobs[i], outcome.node, outcome.devices));
      const bool repartitions = std::ranges::any_of(
          outcome.devices, [](const planning::AssignedDevice& d) { return !d.existing; });
      Run(jobs[i], outcome.node, outcome.devices, repartitions ? options_.repartition_seconds : 0);
    }
    return left;
  }

  Status Bind(int job, const std::string& node,
              const std::vector<planning::AssignedDevice>& devices) {
    auto bound = std::make_shared<cluster::Pod>(*pods_[job]);
    bound->node_name = node;
    bound->phase = "Running";
    for (const planning::AssignedDevice& device : devices) {
      bound->promised.push_back({device.gpu, device.placement, device.model});
    }
    return snapshot_.Bind(std::move(bound), node);
  }
  void Run(int job, const std::string& node, const std::vector<planning::AssignedDevice>& devices,
           double delay) {
    const int at = node_of_.at(node);
    stage_.Start(job, at, DevicesOf(devices), delay);
    Touch(at);
  }

  // The placement if the profile is a MIG profile, else the whole GPU.
  static std::vector<ScalingDevice> DevicesOf(
      const std::vector<planning::AssignedDevice>& devices) {
    std::vector<ScalingDevice> all;
    for (const planning::AssignedDevice& device : devices) {
      if (ScalingModel().FindProfile(device.profile)) {
        all.push_back({device.gpu, device.profile, device.placement.start});
      } else {
        all.push_back({device.gpu, "", 0});
      }
    }
    return all;
  }

  // Places pending jobs; for the others it moves jobs, then requests nodes.
  Status PlanForWaiting() {
    last_plan_ = stage_.now();
    changed_since_.reset();
    const std::vector<int> waiting(stage_.waiting().begin(), stage_.waiting().end());
    NOS_ASSIGN(std::vector<int> left, Place(waiting));
    if (options_.moves && !left.empty()) left = MoveFor(left);
    if (!left.empty()) Grow(left);
    return Status::Ok();
  }

  std::vector<int> MoveFor(const std::vector<int>& jobs) {
    if (snapshot_.size() == 0) return jobs;
    planning::MoveOptions options;
    options.out_of_time = Patience();
    planning::MovePlan plan =
        planning::PlanMoves(snapshot_, PodsOf(jobs), framework_, OptionsNow(), options);
    std::set<int> served_pods;
    for (const planning::PodMoves& pod_moves : plan.pod_moves) {
      MoveAll(pod_moves.moves);
      served_pods.insert(pod_moves.pod);
      // The moved jobs must run on their new nodes first.
      Run(jobs[pod_moves.pod], pod_moves.node, pod_moves.devices, stage_.options().restart_seconds);
    }
    snapshot_ = std::move(plan.after);
    std::vector<int> left;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (!served_pods.contains(static_cast<int>(i))) left.push_back(jobs[i]);
    }
    return left;
  }
  void MoveAll(const std::vector<planning::Move>& moves) {
    for (const planning::Move& move : moves) {
      const int to = node_of_.at(move.to);
      stage_.Move(job_of_.at(move.pod->Key()), to, DevicesOf(move.devices));
      Touch(node_of_.at(move.from));
      Touch(to);
    }
  }

  std::vector<planning::NodePoolState> PoolsNow() const {
    std::vector<planning::NodePoolState> now;
    for (const auto& pool : pools_) now.push_back({pool, 0, 0, ""});
    for (const int node : stage_.live()) {
      planning::NodePoolState& pool = now[stage_.nodes()[node].pool];
      ++(node_of_.contains(NameOf(node)) ? pool.nodes : pool.coming);
    }
    return now;
  }

  void Grow(const std::vector<int>& jobs) {
    const planning::GrowthPlan plan =
        planning::PlanGrowth(snapshot_, PodsOf(jobs), PoolsNow(), framework_, OptionsNow());
    for (size_t p = 0; p < plan.pools.size(); ++p) {
      for (int i = 0; i < plan.pools[p].count; ++i) stage_.Ask(static_cast<int>(p));
      if (plan.pools[p].count > 0) grown_ = stage_.now();
    }
  }

  // Call when the resources in use on the node have changed.
  void Touch(int node) {
    Shrinkable();
    const StageNode& there = stage_.nodes()[node];
    int used = 0;
    for (const int job : there.jobs) used += SlotsOf(stage_.job(job));
    const int all = ScalingModel().slots() * stage_.options().pools[there.pool].gpus;
    const bool empty = there.jobs.empty();
    const bool little = options_.scale_down && static_cast<double>(used) <= kMaxUse * all;
    if (!empty && !little) {
      quiet_.erase(node);
      could_go_.erase(node);
      return;
    }
    const auto [at, fresh] = quiet_.try_emplace(node, Quiet{empty, stage_.now()});
    if (!fresh && at->second.empty != empty) at->second = {empty, stage_.now()};
  }
  bool IsDue(int node) const {
    const auto due = DueOf(node);
    return due && *due <= stage_.now();
  }

  Status RemoveEmpty() {
    const std::map<int, Quiet> quiet = quiet_;
    for (const auto& [node, how] : quiet) {
      if (!IsDue(node)) continue;
      snapshot_.RemoveNode(NameOf(node));
      Remove(node);
    }
    return Status::Ok();
  }

  // Like the autoscaler, removes nodes that could have been removed for the whole window. Does
  // nothing while jobs are pending that could use them.
  Status Shrink() {
    if (!stage_.waiting().empty()) {
      Shrinkable();
      return Status::Ok();
    }
    // 1. Record since when each quiet node could be removed. All nodes are checked together, since
    //    one may need the capacity of another.
    planning::ShrinkOptions options;
    options.utilization_threshold = kMaxUse;
    options.max_nodes = static_cast<int>(snapshot_.size());
    options.out_of_time = Patience();
    options.may_go = [this](const cluster::NodeInfo& node) {
      return quiet_.contains(node_of_.at(node.node->meta.name));
    };
    const auto pools = PoolsNow();
    const planning::ShrinkPlan could = planning::PlanShrink(snapshot_, pools, framework_, options);
    std::map<int, double> could_go;
    for (const planning::EmptiedNode& each : could.nodes) {
      const int node = node_of_.at(each.name);
      could_go[node] = CouldGoSince(node).value_or(stage_.now());
    }
    could_go_ = std::move(could_go);
    if (std::ranges::none_of(could_go_, [&](const auto& each) { return IsDue(each.first); })) {
      return Status::Ok();
    }
    // 2. Remove nodes that are due. They need a plan of their own, because the first one also
    // empties
    //    nodes that are not due.
    options.max_nodes = kMaxEmptied;
    options.out_of_time = Patience();
    options.may_go = [this](const cluster::NodeInfo& node) {
      return IsDue(node_of_.at(node.node->meta.name));
    };
    planning::ShrinkPlan plan = planning::PlanShrink(snapshot_, pools, framework_, options);
    for (const planning::EmptiedNode& node : plan.nodes) {
      MoveAll(node.moves);
      Remove(node_of_.at(node.name));
    }
    if (!plan.nodes.empty()) snapshot_ = std::move(plan.after);
    return Status::Ok();
  }
  void Remove(int node) {
    node_of_.erase(NameOf(node));
    quiet_.erase(node);
    could_go_.erase(node);
    stage_.Remove(node);
    Changed();
  }

  Stage& stage_;
  const NosScalerOptions options_;
  const scheduling::Framework framework_ = scheduling::Framework::Default();
  cluster::ClusterSnapshot snapshot_;  // ready nodes only
  std::vector<std::shared_ptr<const cluster::NodePool>> pools_;
  std::map<int, PodPtr> pods_;  // by job that has not ended; in pending form
  std::map<std::string, int> job_of_, node_of_;
  std::map<int, Quiet> quiet_;      // by node
  std::map<int, double> could_go_;  // by evaluated quiet node: removable since
  std::optional<double> changed_since_;
  double last_arrival_ = -1e18, last_plan_ = -1e18, last_shrink_ = -1e18, grown_ = -1e18;
  std::optional<double> shrinkable_since_;  // set if something changed since the last attempt
};

}  // namespace

std::unique_ptr<Scaler> MakeNosScaler(Stage& stage, const NosScalerOptions& options) {
  return std::make_unique<NosScaler>(stage, options);
}

}  // namespace nos::study
