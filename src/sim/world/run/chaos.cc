#include "sim/chaos.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/annotations.h"
#include "sim/workload.h"
#include "sim/world.h"
#include "sim/world/node/invariants.h"
#include "sim/world/run/chaos_claims.h"
#include "sim/world/run/chaos_lost_device.h"
#include "sim/world/run/chaos_pools.h"
#include "sim/world/run/chaos_progress.h"
#include "sim/world/run/chaos_quotas.h"
#include "sim/world/run/chaos_stolen_node.h"
#include "sim/world/run/chaos_tenant.h"

namespace nos::sim {
namespace {

constexpr Duration kProbe = std::chrono::seconds(5);
constexpr Duration kMaxSettleTime = std::chrono::hours(6);  // after the faults have stopped
constexpr size_t kShownEvents = 60;
// Each of these has its own random stream, so that a new one does not change the runs of existing
// seeds.
constexpr uint64_t kLate = 0x1a7e, kLosses = 0x1055e5, kInits = 0x1417, kRivals = 0x217a1,
                   kGone = 0x607e, kGangs = 0x6a465, kBudgets = 0xb0d6e7, kTaints = 0x7a1275,
                   kQuotas = 0x90074, kShares = 0x5a4e5, kDaemons = 0xdae705, kResets = 0x4e5e7,
                   kPools = 0x90015, kDeletions = 0xde1e7e, kClaims = 0xc1a125, kTenant = 0x7e4a47,
                   kThief = 0x7417f, kLost = 0x105de;
// How long the hostile tenant and the thief of a node's token go on, and GPUs hang, after the
// faults.
constexpr Duration kHostileFor = std::chrono::minutes(15), kThiefFor = std::chrono::minutes(8),
                   kHangFor = std::chrono::minutes(8);
const kube::Resource kDisruptionBudgets{"policy", "v1", "poddisruptionbudgets",
                                        "PodDisruptionBudget", true};

const cluster::Taint kDedicated{"dedicated", "team", "NoSchedule"};
constexpr std::string_view kGuarded = "guarded";  // label of the pods that the budget covers

// Rates differ between seeds, and some kinds of fault are absent: a fault that is always present
// hides problems that occur only without it.
FaultRates DrawRates(Random& random) {
  const auto rate = [&](double most) { return random.Chance(0.4) ? 0 : random.Uniform() * most; };
  FaultRates rates;
  rates.conflict = rate(0.2);
  rates.request_lost = rate(0.1);
  rates.response_lost = rate(0.1);
  rates.event_delayed = rate(0.3);
  rates.event_repeated = rate(0.2);
  rates.stream_dropped = rate(0.03);
  rates.stream_expired = rate(0.02);
  rates.crash = rate(0.03);
  rates.create_failed = rate(0.2);
  rates.destroy_in_use = rate(0.3);
  rates.offer_failed = rate(0.1);
  rates.reboots_per_hour = rate(20);
  rates.offer_unanswered = rate(0.1);
  rates.kubelet_forgets = rate(0.03);
  return rates;
}

WorldOptions DrawWorld(const ChaosOptions& options, Random& random, ChaosPools& pools) {
  WorldOptions world;
  world.seed = random.Next();
  world.faults = DrawRates(random);
  // Nearly all events are late, so that bindings and withdrawals cross each other.
  if (Random(options.seed ^ kLate).Chance(0.3)) world.faults.event_delayed = 0.9;
  if (Random losses(options.seed ^ kLosses); losses.Chance(0.4)) {
    world.faults.gpu_losses_per_hour = losses.Uniform() * 60;
  }
  if (Random daemons(options.seed ^ kDaemons);
      (options.mps || options.hybrid) && daemons.Chance(0.6)) {
    world.faults.daemon_losses_per_hour = daemons.Uniform() * 60;
  }
  if (Random rivals(options.seed ^ kRivals); rivals.Chance(0.4)) {
    world.faults.rival_binds_per_hour = rivals.Uniform() * 200;
  }
  if (Random gone(options.seed ^ kGone); gone.Chance(0.4)) {
    world.faults.node_gone_at_binding = gone.Uniform() * 0.3;
    world.nodes_return = std::chrono::seconds(5 + gone.Below(60));
  }
  world.faults_last = options.faults_last;
  world.check_annotations = true;
  if (options.scheduler_partitions) world.partitioned_by = scheduling::PartitionedBy::kScheduler;
  world.partitioner.hold_after = std::chrono::minutes(random.Chance(0.5) ? 2 : 30);
  world.partitioner.max_pause = std::chrono::minutes(1);
  // the kubelet overwrites changes by others
  world.times.kubelet.heartbeat = std::chrono::seconds(10);
  world.times.agent.longest_pause = std::chrono::seconds(20);
  world.times.reset_pauses = {std::chrono::seconds(5), std::chrono::seconds(20)};
  if (options.pools) world.autoscaler = pools.DrawAutoscaler(world.faults);
  return world;
}

class Chaos {
 public:
  explicit Chaos(const ChaosOptions& options)
      : options_(options),
        random_(options.seed),
        pools_(options.seed ^ kPools),
        world_(DrawWorld(options, random_, pools_), gpu::Catalogue::Builtin()) {
    report_.seed = options.seed;
    report_.scheduler_partitions = options.scheduler_partitions;
    report_.mps = options.mps;
    report_.hybrid = options.hybrid;
    report_.resets = options.resets;
    report_.pools = options.pools;
    report_.claims = options.claims;
    report_.hostile_tenant = options.hostile_tenant;
    report_.stolen_node = options.stolen_node;
    report_.lost_device = options.lost_device;
    if (options_.on_event) {
      world_.log().SetSinkForDetails(options_.on_event);
    }
  }

  ChaosReport Run() && {
    // 1. Set up the cluster. Nodes and pools come first: pods request slices of their GPU models.
    AddNodes();
    if (options_.pools) Note(pools_.Add(world_, models_));
    // The charge of a whole GPU depends on its node, which the quota checker does not consider.
    if (options_.hostile_tenant) {
      AddTenant();
    } else if (HasQuotas()) {
      Note(quotas_.Add(options_.faults_last));
    }
    if (options_.claims) Note(claims_.Add(options_.faults_last));
    if (options_.stolen_node) AddStolenNode();
    AddPods();
    AddBudget();
    // 2. Run with faults. The world checks its invariants after every step.
    world_.StartControllers();
    if (options_.stolen_node) lost_.node.Start(EndOfHostility());
    if (options_.lost_device) lost_.devices.Start(start_ + options_.faults_last, EndOfHostility());
    world_.RunUntil(start_ + options_.faults_last);
    if (options_.hostile_tenant || options_.stolen_node) {
      if (options_.hostile_tenant) {
        RunWithTenant();
      } else {
        RunWithFault();
      }
      Finish();
      return std::move(report_);
    }
    if (options_.lost_device) {
      RunWithFault();
      world_.RunFor(kFaultsLinger);  // the agents read the GPUs that were released
    }
    // 3. Run without faults until every pod that can run does, and check for progress meanwhile.
    progress_.Begin();
    while (report_.violations.empty() && world_.violations().empty() && !progress_.AtRest()) {
      world_.RunFor(kProbe);
      if (auto problem = progress_.Check()) report_.violations.push_back(*std::move(problem));
      if (world_.Now() - start_ > options_.faults_last + kMaxSettleTime) {
        report_.violations.push_back("the cluster does not come to rest");
        for (std::string& why : progress_.Restless(world_.Pods())) {
          report_.violations.push_back(std::move(why));
        }
      }
    }
    Finish();
    return std::move(report_);
  }

 private:
  // Nearly the whole cluster is the min of one namespace, and another borrows it.
  void AddTenant() {
    Note(quotas_.AddFixed(ChaosTenant::Quotas(size_.memory * 9 / 10, size_.cpu)));
    Note(DefinePodGroups(client_));
    Note(tenant_.Start(models_, EndOfHostility()));
  }

  Time EndOfHostility() const {
    Duration more = options_.stolen_node ? kThiefFor : kHostileFor;
    if (options_.lost_device) more = kHangFor;
    return start_ + options_.faults_last + more;
  }

  void AddStolenNode() {
    Note(world_.AddNode(lost_.node.Draw(models_)));
    progress_.Exclude(std::string(StolenNode::kName), StolenNode::Toleration());
  }

  // Runs without other faults while the thief goes on, or GPUs hang.
  void RunWithFault() {
    world_.RunFor(kFaultsLinger);
    progress_.Begin();
    while (report_.violations.empty() && world_.violations().empty() &&
           world_.Now() < EndOfHostility()) {
      world_.RunFor(kProbe);
      if (auto problem = progress_.Check()) report_.violations.push_back(*std::move(problem));
    }
  }

  // Runs without faults while the tenant goes on.
  void RunWithTenant() {
    world_.RunFor(kFaultsLinger);
    GuaranteeChecker checker;
    while (report_.violations.empty() && world_.violations().empty() &&
           world_.Now() < EndOfHostility()) {
      world_.RunFor(kProbe);
      if (auto problem = checker.See(progress_.Entitled(ChaosTenant::kGuaranteed), world_.Now())) {
        report_.late = true;
        report_.violations.push_back(*std::move(problem));
      }
    }
  }

  void AddNodes() {
    const auto& catalogue = gpu::Catalogue::Builtin();
    const int least = options_.pools ? 0 : 1;
    const int nodes =
        options_.nodes > 0 ? options_.nodes : least + static_cast<int>(random_.Below(4));
    for (int i = 0; i < nodes; ++i) {
      const gpu::Model& model =
          *DrawModel(&*catalogue.models()[random_.Below(catalogue.models().size())]);
      const int gpus = options_.gpus > 0 ? options_.gpus : 1 + static_cast<int>(random_.Below(4));
      NodeSpec node;
      node.name = fmt::format("n{}", i + 1);
      node.gpus.assign(static_cast<size_t>(gpus), GpuSpec{model.name(), {}});
      node.cpu = Quantity::FromValue(8 + static_cast<int64_t>(random_.Below(25)));
      node.mps = options_.mps && (i == 0 || shares_.Chance(0.5));
      node.hybrid = options_.hybrid && (i == 0 || shares_.Chance(0.5)) && !node.mps;
      if (node.hybrid && options_.resets) node.resets = agent::ResetRule::kGpu;
      if (tainted_ && taints_.Chance(0.3)) node.taints = {kDedicated};
      if (options_.claims) claims_.DrawNode(node);
      Note(world_.AddNode(node));
      if (tainted_) ChangeTaints(node.name);
      models_.push_back(FindDividedModel(catalogue, node, node.gpus[0]).value());
      if (node.hybrid) {
        models_.push_back(gpu::SharesOfMemory(int64_t{model.memory_gib()} * 1024, node.max_shares));
      }
      report_.gpus += gpus;
      size_.memory += int64_t{model.memory_gib()} * gpus;
      size_.cpu += node.cpu.Value();
    }
    report_.nodes = nodes;
  }

  bool HasQuotas() const { return !options_.hybrid && !options_.claims; }

  // With `resets`, prefers models whose MIG mode changes only with a reset.
  const gpu::Model* DrawModel(const gpu::Model* drawn) {
    if (!options_.resets || resets_.Chance(0.3)) return drawn;
    const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
    std::vector<const gpu::Model*> reset;
    for (const auto& model : catalogue.models()) {
      if (agent::NeedsReset(*model)) reset.push_back(&*model);
    }
    return reset[resets_.Below(reset.size())];
  }

  // Adds and removes a taint at random times.
  void ChangeTaints(const std::string& node) {
    for (uint64_t i = taints_.Below(4); i > 0; --i) {
      const bool comes = taints_.Chance(0.5);
      world_.At(Sometime(taints_), [this, node, comes] {
        const JsonArray taints = comes ? TaintsJson({kDedicated}) : JsonArray();
        const JsonObject patch = {{"spec", JsonObject{{"taints", taints}}}};
        // Errors are ignored: the node may be deleted.
        (void)client_.Patch(kube::kNodes, "", node, kube::PatchType::kMerge, patch);
      });
    }
  }

  Time Sometime(Random& random) const {
    return world_.Now() + FromSeconds(random.Uniform() * ToSeconds(options_.faults_last));
  }

  void AddPods() {
    RandomWorkload workload;
    workload.pods = options_.pods > 0 ? options_.pods : 10 + static_cast<int>(random_.Below(21));
    workload.arrivals_last = options_.faults_last;
    if (options_.hostile_tenant) workload.arrivals_last += kHostileFor - GuaranteeChecker::kBound;
    if (options_.stolen_node) workload.arrivals_last += kThiefFor - options_.bound;
    if (options_.lost_device) workload.arrivals_last += kHangFor - options_.bound;
    report_.pods = workload.pods;
    std::vector<PodSpec> pods = DrawWorkload(workload, models_, random_);
    if (Random inits(options_.seed ^ kInits); inits.Chance(0.4)) {
      DrawInitContainers(models_, pods, inits);
    }
    if (Random gangs(options_.seed ^ kGangs); gangs.Chance(0.5) && !options_.hostile_tenant) {
      AddGangs(workload, gangs);
    }
    for (PodSpec& pod : pods) {
      pod.ns = HasQuotas() ? quotas_.DrawNamespace() : "default";
      if (options_.hostile_tenant) pod.ns = ChaosTenant::kGuaranteed;
      if (options_.claims) claims_.DrawClaims(pod);
      if (deletions_.Chance(0.1)) DeleteByForce(pod);
      Submit(std::move(pod));
    }
  }

  void AddGangs(const RandomWorkload& workload, Random& random) {
    Note(DefinePodGroups(client_));
    for (GangSpec gang : DrawGangs(workload, models_, random)) {
      if (options_.claims) claims_.DrawClaims(gang);
      progress_.Expect("default/" + gang.name, static_cast<size_t>(gang.least));
      ++report_.gangs;
      world_.checks().gangs().Expect("default/" + gang.name, static_cast<size_t>(gang.least));
      world_.At(world_.Now() + gang.arrival,
                [this, gang] { Note(PutPodGroup(client_, gang.name, gang.least)); });
      const bool tolerate = taints_.Chance(0.5);
      for (PodSpec pod : gang.pods) Submit(std::move(pod), tolerate);
      report_.pods += static_cast<int>(gang.pods.size());
    }
  }

  void Submit(PodSpec pod) { Submit(std::move(pod), taints_.Chance(0.5)); }
  void Submit(PodSpec pod, bool tolerates) {
    if (tolerates) pod.tolerations = {{kDedicated.key, "Exists", "", ""}};
    if (options_.stolen_node) lost_.node.DrawToleration(pod);
    if (options_.pools) pod.owner = pools_.DrawOwner(pod.name);
    if (budgets_.Chance(0.5)) pod.labels[std::string(kGuarded)] = "yes";
    pod.grace = DrawGrace();
    world_.Submit(pod, world_.Now() + pod.arrival);
  }

  // Mostly short; a tenth vanish at once when they are deleted, a few may take hours.
  Duration DrawGrace() {
    const double kind = deletions_.Uniform();
    if (kind < 0.1) return Duration{};
    if (kind < 0.9) return std::chrono::seconds(1 + deletions_.Below(60));
    return std::chrono::hours(1 + deletions_.Below(3));
  }

  // The pod may not exist at that time.
  void DeleteByForce(const PodSpec& pod) {
    world_.At(Sometime(deletions_), [this, ns = pod.ns, name = pod.name] {
      (void)client_.Delete(kube::kPods, ns, name, {{"gracePeriodSeconds", 0}});
    });
  }

  // Sets the allowed disruptions at random times, because no controller computes them here.
  void AddBudget() {
    if (budgets_.Chance(0.5)) return;
    const Json budget = BudgetObject("default", "guard", std::string(kGuarded), "yes");
    Note(client_.Create(kDisruptionBudgets, "default", budget).status());
    for (const int allowed : {0, 1, 3}) {
      world_.At(Sometime(budgets_), [this, allowed] {
        const JsonObject patch = {{"status", JsonObject{{"disruptionsAllowed", allowed}}}};
        Note(client_
                 .Patch(kDisruptionBudgets, "default", "guard", kube::PatchType::kMerge, patch,
                        "status")
                 .status());
      });
    }
  }

  void Note(const Status& status) {
    if (!status.ok()) report_.violations.push_back(status.ToString());
  }

  // While no binding is in progress, the scheduler's reservations must equal the requests of bound
  // pods. Hostile pods may come until the end.
  void CheckReservations() {
    const controllers::Scheduler* scheduler = world_.controllers().scheduler();
    if (scheduler == nullptr || scheduler->bindings() + scheduler->departed() > 0) return;
    const auto pods = world_.Pods();
    const auto truth =
        cluster::ClusterSnapshot::Build(world_.Nodes(), pods, gpu::Catalogue::Builtin());
    for (size_t i = 0; i < truth.size(); ++i) {
      const std::string& name = truth.node(i).node->meta.name;
      const cluster::NodeInfo* known = scheduler->snapshot().Find(name);
      if (known != nullptr && known->requested == truth.node(i).requested) continue;
      const auto names = [](const cluster::NodeInfo& info) {
        std::vector<std::string> keys;
        for (const auto& pod : info.pods) keys.push_back(pod->Key());
        std::ranges::sort(keys);
        return fmt::format("{}", fmt::join(keys, " "));
      };
      report_.violations.push_back(fmt::format(
          "{}: the scheduler takes it for {}, and bound there are: {}", name,
          known == nullptr ? "gone" : "the node of: " + names(*known), names(truth.node(i))));
    }
  }

  void Finish() {
    if (world_.violations().empty() && report_.violations.empty()) {
      CheckReservations();
      if (options_.claims) {
        for (std::string& problem : claims_.Leftovers()) {
          report_.violations.push_back(std::move(problem));
        }
      }
      if (options_.lost_device) {
        for (std::string& problem : lost_.devices.Leftovers()) {
          report_.violations.push_back(std::move(problem));
        }
      }
    }
    report_.violations.insert(report_.violations.end(), world_.violations().begin(),
                              world_.violations().end());
    for (const auto& pod : world_.Pods()) {
      report_.succeeded += pod->phase == "Succeeded" ? 1 : 0;
      report_.running += pod->phase == "Running" ? 1 : 0;
      report_.pending += pod->phase == "Pending" ? 1 : 0;
    }
    report_.whole = progress_.CountWhole(world_.Pods());
    report_.recreated = world_.recreated();
    report_.reclaimed = world_.checks().evictions().evictions();
    report_.allocated = claims_.allocated();
    report_.forged = lost_.node.forged();
    report_.hangs = lost_.devices.hangs();
    report_.evictions = world_.checks().moves().evictions();
    for (const PoolState& pool : world_.infrastructure().States()) {
      report_.made += pool.made;
      report_.node_hours += pool.node_hours;
    }
    report_.time = world_.Now() - start_;
    report_.steps = world_.steps();
    report_.events = world_.log().count();
    report_.hash = world_.log().hash();
    if (report_.ok()) return;
    const auto& lines = world_.log().lines();
    const size_t skip = lines.size() > kShownEvents ? lines.size() - kShownEvents : 0;
    report_.last_events.assign(lines.begin() + static_cast<std::ptrdiff_t>(skip), lines.end());
    DescribeState();
  }

  void DescribeState() {
    for (const auto& pod : world_.Pods()) {
      if (!ProgressChecker::Waits(*pod)) continue;
      std::string line = fmt::format("{} priority {} asks", pod->Key(), pod->priority);
      for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
        line += fmt::format(" {}x{}", amount.ToString(), resource);
      }
      for (const auto& condition : pod->conditions) {
        line += fmt::format("; {}={} {}", condition.type, condition.status, condition.message);
      }
      report_.state.push_back(std::move(line));
    }
    if (options_.claims) {
      for (std::string& line : claims_.Describe()) report_.state.push_back(std::move(line));
    }
    for (std::string& line : quotas_.Describe(world_.Pods())) {
      report_.state.push_back(std::move(line));
    }
    for (const auto& node : world_.Nodes()) {
      std::string line =
          fmt::format("{} cpu {}:", node->meta.name, node->allocatable.at("cpu").ToString());
      for (const auto& [key, value] : node->meta.annotations) {
        if (key.starts_with(cluster::kPrefix)) line += fmt::format("\n    {}={}", key, value);
      }
      report_.state.push_back(std::move(line));
    }
  }

  ChaosOptions options_;
  Random random_;
  ChaosPools pools_;
  World world_;
  ChaosReport report_;
  kube::Client client_{world_.api()};
  const Time start_ = world_.Now();
  Random budgets_{options_.seed ^ kBudgets}, taints_{options_.seed ^ kTaints},
      shares_{options_.seed ^ kShares}, resets_{options_.seed ^ kResets},
      deletions_{options_.seed ^ kDeletions};
  const bool tainted_ = taints_.Chance(0.4);
  ChaosQuotas quotas_{world_, options_.seed ^ kQuotas, options_.hostile_tenant};
  ChaosTenant tenant_{world_, options_.seed ^ kTenant};
  ChaosClaims claims_{world_, options_.seed ^ kClaims};
  struct {
    StolenNode node;
    LostDevices devices;
  } lost_{{world_, options_.seed ^ kThief}, {world_, options_.seed ^ kLost}};
  ProgressChecker progress_{options_, world_, {quotas_, claims_, pools_}};
  std::vector<const gpu::Model*> models_;
  struct {
    int64_t memory = 0, cpu = 0;  // of all nodes: GB of GPUs, cores
  } size_;
};

}  // namespace

ChaosReport RunChaos(const ChaosOptions& options) { return Chaos(options).Run(); }

std::string FormatChaosReport(const ChaosReport& report) {
  std::string out = fmt::format(
      "seed {}: {}: {} nodes, {} GPUs, {} pods: {} succeeded, {} running, {} cannot run; "
      "{} of {} gangs whole; {} recreated; {} virtual, {} steps\n",
      report.seed, report.ok() ? "ok" : "BROKEN", report.nodes, report.gpus, report.pods,
      report.succeeded, report.running, report.pending, report.whole, report.gangs,
      report.recreated, FormatAge(report.time), report.steps);
  if (report.pools) {
    out.insert(out.size() - 1,
               fmt::format(", {} nodes of pools made, {:.1f} node-hours, {} pods moved",
                           report.made, report.node_hours, report.evictions));
  }
  if (report.claims) {
    out.insert(out.size() - 1, fmt::format(", {} claims allocated", report.allocated));
  }
  if (report.hostile_tenant) {
    out.insert(out.size() - 1, fmt::format(", {} pods evicted for others", report.reclaimed));
  }
  if (report.stolen_node) {
    out.insert(out.size() - 1, fmt::format(", {} forged writes", report.forged));
  }
  if (report.lost_device) {
    out.insert(out.size() - 1, fmt::format(", {} calls to the driver given up", report.hangs));
  }
  if (report.ok()) return out;
  for (const std::string& event : report.last_events) out += fmt::format("  {}\n", event);
  for (const std::string& line : report.state) out += fmt::format("  = {}\n", line);
  for (const std::string& violation : report.violations) out += fmt::format("  ! {}\n", violation);
  out += fmt::format(
      "see it again: build/release/nos simulate chaos --seed {}{}{}{}{}{}{}{}{}{}\n", report.seed,
      report.scheduler_partitions ? " --scheduler-partitions" : "", report.mps ? " --mps" : "",
      report.hybrid ? " --hybrid" : "", report.resets ? " --resets" : "",
      report.pools ? " --pools" : "", report.claims ? " --claims" : "",
      report.hostile_tenant ? " --hostile-tenant" : "", report.stolen_node ? " --stolen-node" : "",
      report.lost_device ? " --lost-device" : "");
  return out;
}

}  // namespace nos::sim
