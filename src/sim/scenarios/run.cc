#include "sim/run_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "base/text.h"
#include "cluster/snapshot.h"
#include "controllers/planned_gangs.h"
#include "planning/planner.h"
#include "sim/scenarios/claims.h"
#include "sim/scenarios/observe.h"
#include "sim/workload.h"

namespace nos::sim {
namespace {

using Verb = Operate::Verb;

std::string Join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : " or ") + part;
  return out;
}

WorldOptions OptionsFor(const Scenario& scenario) {
  WorldOptions options;
  options.seed = scenario.seed;
  options.partitioner.objective = scenario.options.objective;
  options.partitioner.hold_after = scenario.options.hold_after;
  options.autoscaler = scenario.autoscaler;
  if (scenario.scheduler_partitions) {
    options.partitioned_by = scheduling::PartitionedBy::kScheduler;
  }
  if (options.autoscaler) options.autoscaler->objective = scenario.options.objective;
  return options;
}

class Run {
 public:
  explicit Run(const Scenario& scenario)
      : scenario_(scenario), world_(OptionsFor(scenario), gpu::Catalogue::Builtin()) {
    report_.source = scenario.source;
  }

  ScenarioReport Execute() && {
    const Status ready = Prepare();
    if (ready.ok()) {
      for (const Step& step : scenario_.steps) {
        step_ = &step;
        std::visit([this](const auto& action) { Do(action); }, step.action);
      }
    } else {
      report_.failures.push_back({0, "the cluster as described", "", ready.ToString()});
    }
    for (const std::string& violation : world_.violations()) {
      report_.failures.push_back({0, "an invariant", "", violation});
    }
    report_.events.assign(world_.log().lines().begin(), world_.log().lines().end());
    return std::move(report_);
  }

 private:
  Status Prepare() {
    for (const NodeSpec& node : scenario_.nodes) NOS_RETURN_IF_ERROR(world_.AddNode(node));
    for (const PoolSpec& pool : scenario_.pools) NOS_RETURN_IF_ERROR(world_.AddPool(pool));
    NOS_RETURN_IF_ERROR(world_.Boot());
    SubmitWaitingPods();
    before_ = TrueLayouts(world_);
    return Status::Ok();
  }

  // Creates the pods that have been pending for some time before the first step.
  void SubmitWaitingPods() {
    Duration longest{};
    for (const Step& step : scenario_.steps) {
      if (const auto* add = std::get_if<AddPods>(&step.action)) {
        longest = std::max(longest, add->waiting);
      }
    }
    const Time now = world_.Now() + longest;
    for (const Step& step : scenario_.steps) {
      const auto* add = std::get_if<AddPods>(&step.action);
      if (add == nullptr || add->waiting == Duration{}) continue;
      for (const PodSpec& pod : add->pods) world_.Submit(pod, now - add->waiting);
    }
    world_.RunUntil(now);
  }

  void Do(const AddPods& add) {
    for (const PodSpec& pod : add.pods) {
      if (const Status made = MakeNamespace(pod.ns); !made.ok()) Fail("", made.ToString());
    }
    if (add.waiting > Duration{}) return;  // created before the first step
    for (const PodSpec& pod : add.pods) world_.Submit(pod, world_.Now() + pod.arrival);
    world_.RunUntil(world_.Now());
  }

  void Do(const PlanNow&) {
    world_.RunUntil(world_.Now());
    const auto snapshot =
        cluster::ClusterSnapshot::Build(world_.Nodes(), world_.Pods(), world_.catalogue());
    std::vector<std::shared_ptr<const cluster::Pod>> pending;
    for (const auto& pod : world_.Pods()) {
      if (pod->node_name.empty() && !pod->Finished()) pending.push_back(pod);
    }
    planning::PlanOptions options = scenario_.options;
    options.now = world_.Now();
    auto ganged = controllers::WithGangs(std::move(pending), world_.Pods(), groups_,
                                         controllers::SliceReservations({}), options.now);
    options.gangs = std::move(ganged.gangs);
    plan_ = planning::MakePlan(snapshot, ganged.pods, world_.controllers().framework(), options);
    planned_last_ = true;
  }

  void Do(const RunFor& run) {
    before_ = TrueLayouts(world_);
    if (!started_) world_.StartControllers();
    started_ = true;
    world_.RunFor(run.time);
    planned_last_ = false;
  }

  void Do(const Operate& operate) {
    const Status status = Operation(operate);
    if (!status.ok()) Fail("", status.ToString());
    world_.RunUntil(world_.Now());
  }

  void Do(const OnClaims& operation) {
    const Status status = Perform(client_, operation);
    if (!status.ok()) Fail("", status.ToString());
    world_.RunUntil(world_.Now());
  }

  void Do(const ExpectClaim& expect) {
    const std::string seen = WhyNot(world_, client_, expect);
    if (!seen.empty()) Fail("", seen);
  }

  Status Operation(const Operate& operate) {
    if (operate.verb == Verb::kDeletePod) return DeletePod(operate.target, operate.force);
    if (operate.verb == Verb::kGroup) return Group(operate.target, operate.count);
    if (operate.verb == Verb::kBudget) return SetBudget(operate);
    if (operate.verb == Verb::kQuota) return SetQuota(operate);
    if (operate.verb == Verb::kDeleteQuota) return DeleteQuota(operate.target);
    if (operate.verb == Verb::kFailPool) {
      return world_.infrastructure().SetFault(operate.target, operate.fault);
    }
    if (operate.verb == Verb::kCrash) {
      Process* process = world_.FindProcess(operate.target);
      if (process == nullptr) return NotFound(operate.target + " is not running");
      process->Crash(operate.time);
      return Status::Ok();
    }
    Machine* machine = world_.FindMachine(operate.target);
    if (machine == nullptr) return NotFound("there is no node " + operate.target);
    return OnNode(operate, *machine);
  }

  Status Group(const std::string& name, int least) {
    if (groups_.pod_groups.rows().empty()) NOS_RETURN_IF_ERROR(DefinePodGroups(client_));
    auto group = std::make_shared<cluster::PodGroup>();
    group->min_member = least;
    groups_.pod_groups.Set("default/" + name, std::move(group));
    return PutPodGroup(client_, name, least);
  }

  // Creates the budget or replaces an existing one. No controller updates its status, so the
  // scenario sets it.
  Status SetBudget(const Operate& operate) {
    static const kube::Resource budgets{"policy", "v1", "poddisruptionbudgets",
                                        "PodDisruptionBudget", true};
    Json budget = BudgetObject("default", operate.target, operate.key, operate.value);
    MakeObject(budget, "spec")["maxUnavailable"] = operate.count;
    Status gone = client_.Delete(budgets, "default", operate.target);
    if (!gone.ok() && gone.code() != Code::kNotFound) return gone;
    NOS_RETURN_IF_ERROR(client_.Create(budgets, "default", budget).status());
    const Json status = JsonObject{{"status", JsonObject{{"disruptionsAllowed", operate.allowed}}}};
    return client_
        .Patch(budgets, "default", operate.target, kube::PatchType::kMerge, status, "status")
        .status();
  }

  static const kube::Resource& QuotaKind(const std::vector<std::string_view>& namespaces) {
    return *WorkloadResource(namespaces.size() > 1 ? "CompositeElasticQuota" : "ElasticQuota");
  }

  // It lies in the first of its namespaces.
  Status DeleteQuota(const std::string& target) {
    const std::vector<std::string_view> namespaces = Split(target, ',');
    return client_.Delete(QuotaKind(namespaces), std::string(namespaces.front()), "quota");
  }

  Status MakeNamespace(std::string_view name) {
    const Json space = {
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
    const Status made = client_.Create(kube::kNamespaces, "", space).status();
    return made.code() == Code::kAlreadyExists ? Status::Ok() : made;
  }

  Status SetQuota(const Operate& operate) {
    const auto amounts = [](const cluster::StringMap& map) {
      JsonObject json;
      for (const auto& [resource, amount] : map) json[resource] = amount;
      return json;
    };
    Status defined = DefineQuotas(client_);
    if (!defined.ok() && defined.code() != Code::kAlreadyExists) return defined;
    const std::vector<std::string_view> namespaces = Split(operate.target, ',');
    JsonObject spec{{"min", amounts(operate.min)}, {"max", amounts(operate.max)}};
    JsonArray names;
    for (const std::string_view ns : namespaces) {
      names.emplace_back(ns);
      NOS_RETURN_IF_ERROR(MakeNamespace(ns));
    }
    if (namespaces.size() > 1) spec["namespaces"] = std::move(names);
    const std::string home(namespaces.front());
    const kube::Resource& kind = QuotaKind(namespaces);
    const Json quota = JsonObject{{"apiVersion", "nos.nebuly.com/v1alpha1"},
                                  {"kind", kind.kind},
                                  {"metadata", JsonObject{{"name", "quota"}, {"namespace", home}}},
                                  {"spec", std::move(spec)}};
    Status gone = DeleteQuota(operate.target);
    if (!gone.ok() && gone.code() != Code::kNotFound) return gone;
    return client_.Create(kind, home, quota).status();
  }

  Status OnNode(const Operate& operate, Machine& machine) {
    const std::string& value = operate.value;
    switch (operate.verb) {
      case Verb::kCordon:
      case Verb::kUncordon:
        return PatchNode(
            operate.target,
            JsonObject{{"spec", JsonObject{{"unschedulable", operate.verb == Verb::kCordon}}}});
      case Verb::kAnnotate:
      case Verb::kLabel: {
        const char* map = operate.verb == Verb::kLabel ? "labels" : "annotations";
        Json entry = value.empty() ? Json(nullptr) : Json(value);
        return PatchNode(
            operate.target,
            JsonObject{
                {"metadata", JsonObject{{map, JsonObject{{operate.key, std::move(entry)}}}}}});
      }
      case Verb::kDeleteNode:
        return client_.Delete(kube::kNodes, "", operate.target);
      case Verb::kReboot:
        machine.Reboot();
        return Status::Ok();
      case Verb::kFailCreate:
        machine.device_faults().FailNext(device::SimAttempt::Kind::kCreate, operate.count);
        return Status::Ok();
      case Verb::kFailReset:
        machine.device_faults().FailNext(device::SimAttempt::Kind::kReset, operate.count);
        return Status::Ok();
      default:
        machine.device_faults().FailNext(device::SimAttempt::Kind::kDestroy, operate.count);
        return Status::Ok();
    }
  }

  Status PatchNode(const std::string& node, const Json& patch) {
    return client_.Patch(kube::kNodes, "", node, kube::PatchType::kMerge, patch).status();
  }

  Status DeletePod(const std::string& name, bool force) {
    const auto pod = world_.FindPod(name);
    if (pod == nullptr) return NotFound("there is no pod " + name);
    const Json options = force ? Json{{"gracePeriodSeconds", 0}} : Json();
    return client_.Delete(kube::kPods, pod->meta.ns, pod->meta.name, options);
  }

  void Do(const ExpectPod& expect) {
    const bool planned = expect.outcome == "placed" || expect.outcome == "pending";
    if (planned && !plan_) return Fail("a plan", "there is no 'plan' before this line");
    const SeenPod seen = planned ? PlannedPod(*plan_, expect.pod) : ActualPod(world_, expect.pod);
    const bool node =
        expect.nodes.empty() || std::count(expect.nodes.begin(), expect.nodes.end(), seen.node) > 0;
    const bool code =
        expect.code.empty() || std::count(seen.codes.begin(), seen.codes.end(), expect.code) > 0;
    if (seen.outcome == expect.outcome && node && code) return;
    std::string expected = expect.outcome;
    if (!expect.nodes.empty()) expected += " on " + Join(expect.nodes);
    if (!expect.code.empty()) expected += " because " + expect.code;
    Fail(expected, seen.text);
  }

  void Do(const ExpectCount& expect) {
    const std::optional<int> count = Count(expect.what, plan_, world_);
    if (!count && expect.what.starts_with("pool ")) return Fail("", "there is no such pool");
    if (!count) return Fail("a plan", "there is no 'plan' before this line");
    const bool met = expect.op == "="    ? *count == expect.count
                     : expect.op == "<=" ? *count <= expect.count
                                         : *count >= expect.count;
    if (!met) {
      Fail(fmt::format("{} {} {}", expect.what, expect.op, expect.count),
           fmt::format("{} {}", expect.what, *count));
    }
  }

  std::map<GpuId, SeenLayout> Layouts() const {
    return planned_last_ && plan_ ? PlannedLayouts(world_, *plan_) : TrueLayouts(world_);
  }

  void Do(const ExpectGpu& expect) {
    const auto layouts = Layouts();
    const auto seen = layouts.find({expect.node, expect.gpu});
    if (seen == layouts.end()) {
      return Fail("", fmt::format("there is no GPU {}/{}", expect.node, expect.gpu));
    }
    std::vector<std::string> wanted;
    for (const ExpectedLayout& alternative : expect.alternatives) {
      if (Matches(alternative, seen->second)) return;
      wanted.push_back(ToString(alternative));
    }
    Fail(Join(wanted), ToString(seen->second));
  }

  void Do(const ExpectUnchanged& expect) {
    const auto without_states = [](SeenLayout layout) {
      for (SeenInstance& instance : layout) instance.state.clear();
      return layout;
    };
    for (const auto& [gpu, layout] : Layouts()) {
      if (!expect.node.empty() && gpu.first != expect.node) continue;
      const SeenLayout before = planned_last_ ? TrueLayouts(world_)[gpu] : before_[gpu];
      if (without_states(layout) == without_states(before)) continue;
      Fail(fmt::format("{}/{}: {}", gpu.first, gpu.second, ToString(before)), ToString(layout));
    }
  }

  void Do(const ExpectAnnotation& expect) {
    for (const auto& node : world_.Nodes()) {
      if (node->meta.name != expect.node) continue;
      const auto found = node->meta.annotations.find(expect.key);
      const std::string seen = found == node->meta.annotations.end() ? "" : found->second;
      if (seen == expect.value) return;
      return Fail(expect.value.empty() ? "none" : expect.value, seen.empty() ? "none" : seen);
    }
    Fail("", "there is no node " + expect.node);
  }

  void Fail(std::string expected, std::string actual) {
    report_.failures.push_back({step_->line, step_->text, std::move(expected), std::move(actual)});
  }

  const Scenario& scenario_;
  World world_;
  kube::Client client_{world_.api()};
  ScenarioReport report_;
  const Step* step_ = nullptr;
  std::optional<planning::Plan> plan_;
  cluster::ClusterContext groups_;
  std::map<GpuId, SeenLayout> before_;  // at the start of the last run
  bool started_ = false;
  bool planned_last_ = false;
};

}  // namespace

ScenarioReport RunScenario(const Scenario& scenario) { return Run(scenario).Execute(); }

std::string FormatFailure(const ScenarioReport& report, const ScenarioFailure& failure) {
  const std::string place =
      failure.line > 0 ? fmt::format("{}:{}", report.source, failure.line) : report.source;
  std::string out = Printable(fmt::format("{}: {}", place, failure.text)) + "\n";
  if (!failure.expected.empty()) out += "  expected: " + Printable(failure.expected) + "\n";
  return out + "  actual:   " + Printable(failure.actual) + "\n";
}

}  // namespace nos::sim
