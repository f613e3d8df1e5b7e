// nos plan: the plan of the partitioner for a dump or a live cluster, and new nodes or moves that
// would serve the remaining pods. Changes no object.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include "base/table.h"
#include "base/text.h"
#include "cluster/snapshot.h"
#include "cmd/audit/cluster_audit.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/growth_report.h"
#include "cmd/query/plan_claims.h"
#include "cmd/query/plan_evictions.h"
#include "cmd/query/plan_pods.h"
#include "cmd/query/plan_report.h"
#include "cmd/query/pool_report.h"
#include "cmd/telemetry/missing_kinds.h"
#include "cmd/telemetry/read_cluster.h"
#include "cmd/terminal.h"
#include "cmd/whatif/cluster_change.h"
#include "controllers/plan_within_quotas.h"
#include "controllers/planned_gangs.h"
#include "planning/names.h"
#include "planning/planner.h"
#include "planning/remedies.h"
#include "planning/slice_choice.h"
#include "scheduling/framework_choice.h"
#include "scheduling/pod_state.h"

namespace nos::cmd {
namespace {

using Pods = std::vector<std::shared_ptr<const cluster::Pod>>;

struct PlanFlags {
  std::vector<std::string> files;
  std::string objective = "pods";
  std::string output = "table", catalogue, kubeconfig, context;
  double seconds = 10;
  Duration hold_after = planning::PlanOptions().hold_after;
  bool with_pools = false, audit = false;
  int moves = 0;  // maximum per pod; 0: moves are not planned
  ClusterChange change;
};

std::string CheckSeconds(const std::string& text) {
  const auto value = ParseDouble(text);
  return value && *value >= 0.001 && *value <= 86400
             ? ""
             : "'" + text + "' is not a number of seconds from 0.001 to 86400";
}

// Pods that the partitioner would plan for if a scheduler had tried all of them.
Pods Plannable(const Pods& pods) {
  Pods plannable;
  size_t left_out = 0;
  for (const auto& pod : pods) {
    if (pod->HasClaims()) continue;  // PlaceClaims
    if (scheduling::IsPlannable(*pod)) plannable.push_back(pod);
    if (scheduling::IsSchedulable(*pod) && scheduling::IsPlacedElsewhere(*pod)) ++left_out;
  }
  if (left_out > 0) {
    std::cerr << "note: " << left_out << (left_out == 1 ? " pending pod is" : " pending pods are")
              << " not planned for: a DaemonSet, a node or the scheduler has chosen the node\n";
  }
  return plannable;
}

// Pods with GPU requirements get the slices that the operator's webhook would choose, one pod after
// the other. Rejected pods are omitted.
Pods WithChosenSlices(Pods pending, cluster::ClusterSnapshot snapshot,
                      const scheduling::FrameworkChoice& frameworks,
                      const planning::PlanOptions& options) {
  const auto by_need = [](const auto& pod) {
    return pod->meta.annotations.contains(cluster::kNeedMemory);
  };
  if (std::ranges::none_of(pending, by_need)) return pending;
  Pods others = pending;
  std::erase_if(others, by_need);
  const planning::Plan first = planning::MakePlan(snapshot, others, frameworks, options);
  for (const planning::PodOutcome& outcome : first.pods) {
    if (!outcome.placed) continue;
    cluster::Pod placed = *outcome.pod;
    for (const planning::AssignedDevice& device : outcome.devices) {
      placed.promised.push_back({device.gpu, device.placement, device.model});
    }
    (void)snapshot.Bind(std::make_shared<const cluster::Pod>(std::move(placed)), outcome.node);
  }
  std::set<std::string> refused;
  for (auto& pod : pending) {
    const planning::NeedAnswer answer =
        planning::AnswerNeed(*pod, snapshot, frameworks.For(*pod), options);
    const std::string name = Printable(pod->Key());
    if (!answer.refusal.empty()) refused.insert(pod->Key());
    if (!answer.refusal.empty()) std::cerr << "warning: " << name << ": " << answer.refusal << "\n";
    if (!answer.warning.empty()) std::cerr << "warning: " << name << ": " << answer.warning << "\n";
    if (!answer.choice) continue;
    std::cerr << "note: " << name << " states GPU requirements and gets " << answer.choice->resource
              << ": " << answer.choice->Reason() << "\n";
    cluster::Pod asking = planning::WithSlice(*pod, answer);
    if (!answer.choice->node.empty()) {
      (void)snapshot.Bind(std::make_shared<const cluster::Pod>(asking), answer.choice->node);
    }
    asking.promised.clear();
    pod = std::make_shared<const cluster::Pod>(std::move(asking));
  }
  std::erase_if(pending, [&](const auto& pod) { return refused.contains(pod->Key()); });
  return pending;
}

void NoteMissingClaims(const ClusterObjects& input, const std::vector<ClaimedPod>& pods) {
  const bool none = !input.context || input.context->device_claims.rows().empty();
  if (pods.empty() || !input.is_dump || !none) return;
  std::cerr << "note: the dump contains no ResourceClaim, so pods with claims wait for them; dump "
               "them with: kubectl get nodes,pods,resourceclaims,resourceslices,deviceclasses -A "
               "-o yaml\n";
}

// Adds gangs of the pods. Gangs whose size the dump does not contain are omitted.
controllers::GangedPods WithKnownGangs(Pods pending, const ClusterObjects& input, Time now) {
  const cluster::ClusterContext context = input.context.value_or(cluster::ClusterContext());
  auto ganged = controllers::WithGangs(std::move(pending), input.pods, context,
                                       controllers::SliceReservations({}), now);
  const size_t unknown = std::erase_if(ganged.gangs, [&](const planning::Gang& gang) {
    return (input.is_dump || !input.context) && !gang.members.empty() &&
           MissesGroups(*ganged.pods[gang.members[0]], context);
  });
  if (unknown > 0) {
    std::cerr << "note: pods of " << unknown << (unknown == 1 ? " group" : " groups")
              << " are planned for one by one, for the dump does not say how many of them are "
                 "placed together; add that with: kubectl get nodes,pods,podgroups -A -o yaml\n";
  }
  return ganged;
}

// Passes the pods that the plan leaves without a place from one further answer to the next.
class Further {
 public:
  Further(const PlanFlags& flags, const ClusterObjects& input,
          const scheduling::FrameworkChoice& frameworks, const planning::PlanOptions& options,
          Unplaced unplaced)
      : flags_(flags),
        input_(input),
        frameworks_(frameworks),
        options_(options),
        unplaced_(std::move(unplaced)) {}

  // Adds moves to the report of the plan.
  void Moves(JsonObject& json, std::string& text) {
    // Objects missing in a dump count as not existing: pods with volumes that it lacks do not move.
    Unplaced unplaced = unplaced_;
    cluster::ClusterContext& context = unplaced.snapshot.ChangeContext();
    if (input_.context) context = *input_.context;
    if (input_.is_dump && context.budgets.rows().empty()) {
      std::cerr << "note: the dump contains no PodDisruptionBudget, so every pod counts as "
                   "evictable; dump them with: kubectl get "
                   "nodes,pods,poddisruptionbudgets -A -o yaml\n";
    }
    planning::MoveOptions moves;
    moves.max_moves = flags_.moves;
    options_.gangs = unplaced.gangs;
    const planning::MovePlan plan =
        planning::PlanMoves(unplaced.snapshot, unplaced.pods, frameworks_, options_, moves);
    json["moves"] = MovesToJson(plan, unplaced);
    text += MovesToText(plan, unplaced, TableWidth());
    unplaced_ = StillUnplaced(unplaced, plan);
  }

  void Growth(JsonObject& json, std::string& text) {
    std::vector<planning::NodePoolState> pools;
    const std::vector<PoolCount> counts = CountPools(unplaced_.snapshot, PoolsIn(input_));
    for (const PoolCount& count : counts) pools.push_back(NowOf(count, options_.now));
    options_.gangs = unplaced_.gangs;
    const planning::GrowthPlan plan =
        planning::PlanGrowth(unplaced_.snapshot, unplaced_.pods, pools, frameworks_, options_);
    json["growth"] = GrowthToJson(plan, pools, unplaced_);
    text += GrowthToText(plan, pools, unplaced_, TableWidth());
  }

 private:
  const PlanFlags& flags_;
  const ClusterObjects& input_;
  const scheduling::FrameworkChoice& frameworks_;
  planning::PlanOptions options_;
  Unplaced unplaced_;
};

// Reports how nos would pack the cluster, whether nos is on it or not.
Status RunAudit(const PlanFlags& flags) {
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(const ClusterObjects input, flags.files.empty()
                                             ? ReadLiveCluster(flags.kubeconfig, flags.context)
                                             : ReadDump(flags.files));
  const SystemClock clock;
  const Time start = clock.Now();
  const PlanningFrameworks known;
  const Audit audit = MakeAudit(input, catalogue, known.choice(),
                                [&] { return clock.Now() - start > FromSeconds(flags.seconds); });
  if (audit.nodes.empty()) {
    return Invalid(
        "no node has GPUs: neither a label nvidia.com/gpu.count nor a capacity nvidia.com/gpu");
  }
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(ToJson(audit)) << "\n";
  } else {
    std::cout << (flags.output == "html" ? ToHtml(audit) : ToText(audit, TableWidth()));
  }
  return Status::Ok();
}

planning::PlanOptions OptionsOf(const PlanFlags& flags, const ClusterObjects& input,
                                const Clock& clock, Time start) {
  planning::PlanOptions options;
  options.objective = planning::FindObjective(flags.objective).value_or(planning::Objective::kPods);
  options.now = input.server_time.value_or(start);
  options.hold_after = flags.hold_after;
  options.out_of_time = [&clock, start, &flags] {
    return clock.Now() - start > FromSeconds(flags.seconds);
  };
  return options;
}

PlannedOutcome OutcomeOf(const PlanFlags& flags, const ClusterObjects& input,
                         const gpu::Catalogue& catalogue) {
  const SystemClock clock;
  const planning::PlanOptions options = OptionsOf(flags, input, clock, clock.Now());
  const auto snapshot = cluster::ClusterSnapshot::Build(input.nodes, input.pods, catalogue);
  const PlanningFrameworks known;
  const controllers::GangedPods ganged =
      WithKnownGangs(WithChosenSlices(Plannable(input.pods), snapshot, known.choice(), options),
                     input, options.now);
  controllers::AdmittedPlan admitted = controllers::PlanWithinQuotas(
      ganged, input.pods, snapshot, input.context.value_or(cluster::ClusterContext()),
      known.choice(), options);
  planning::AddRemedies(snapshot, admitted.gangs, known.choice(), admitted.quotas,
                        options.out_of_time, admitted.plan);
  PlannedOutcome outcome{WithRefused(std::move(admitted)), {}};
  outcome.victims = AskForEvictions(input, catalogue, options.out_of_time, outcome.plan);
  return outcome;
}

// Compares the plans for the cluster as it is and after the change.
Status RunChange(const PlanFlags& flags) {
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(const ClusterObjects input, flags.files.empty()
                                             ? ReadLiveCluster(flags.kubeconfig, flags.context)
                                             : ReadDump(flags.files));
  NOS_ASSIGN(const ClusterObjects changed, WithChange(input, flags.change, catalogue));
  const ChangeReport report = CompareOutcomes(input, changed, OutcomeOf(flags, input, catalogue),
                                              OutcomeOf(flags, changed, catalogue));
  std::cout << (flags.output == "json" ? WriteJsonPretty(ToJson(report)) + "\n" : ToText(report));
  return Status::Ok();
}

// The flags of a change go with few others.
Status CheckChange(const PlanFlags& flags) {
  if (!flags.change.any()) return Status::Ok();
  if (flags.audit || flags.with_pools || flags.moves > 0) {
    return Invalid(
        "--add-node, --remove-node and --quota go without --audit, --with-pools and "
        "--moves");
  }
  return flags.output == "html" ? Invalid("-o html is for --audit") : Status::Ok();
}

Status RunPlan(const PlanFlags& flags) {
  NOS_RETURN_IF_ERROR(CheckChange(flags));
  if (flags.change.any()) return RunChange(flags);
  if (flags.audit) return RunAudit(flags);
  if (flags.output == "html") return Invalid("-o html is for --audit");
  // 1. Read the cluster and report problems of its nodes.
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(const ClusterObjects input, flags.files.empty()
                                             ? ReadLiveCluster(flags.kubeconfig, flags.context)
                                             : ReadDump(flags.files));
  const auto snapshot = cluster::ClusterSnapshot::Build(input.nodes, input.pods, catalogue);
  for (size_t i = 0; i < snapshot.size(); ++i) {
    for (const std::string& problem : snapshot.node(i).gpus.problems) {
      std::cerr << "warning: node " << Printable(snapshot.node(i).node->meta.name + ": " + problem)
                << "\n";
    }
  }
  // 2. Plan. Slices for GPU requirements are chosen first, as the planner needs resource names.
  const SystemClock clock;
  const Time start = clock.Now();
  const planning::PlanOptions options = OptionsOf(flags, input, clock, start);
  const PlanningFrameworks known;
  const scheduling::FrameworkChoice& frameworks = known.choice();
  const controllers::GangedPods ganged = WithKnownGangs(
      WithChosenSlices(Plannable(input.pods), snapshot, frameworks, options), input, options.now);
  controllers::AdmittedPlan admitted = controllers::PlanWithinQuotas(
      ganged, input.pods, snapshot, input.context.value_or(cluster::ClusterContext()), frameworks,
      options);
  const Duration took = clock.Now() - start;
  const bool further = flags.moves > 0 || flags.with_pools;
  Unplaced unplaced = further ? UnplacedOf(admitted, snapshot) : Unplaced();
  planning::AddRemedies(snapshot, admitted.gangs, frameworks, admitted.quotas, options.out_of_time,
                        admitted.plan);
  planning::Plan plan = WithRefused(std::move(admitted));
  AskForEvictions(input, catalogue, options.out_of_time, plan);
  if (const std::string hint = AuditHint(plan, snapshot); !hint.empty()) {
    std::cerr << "note: " << hint << "\n";
  }
  // 3. Pods with claims, and those for which a driver's devices remain.
  const std::vector<ClaimedPod> claimed = PlaceClaims(input, catalogue, options.out_of_time, plan);
  NoteMissingClaims(input, claimed);
  std::set<std::string> served;
  for (const ClaimedPod& pod : claimed) {
    if (!pod.node.empty()) served.insert(pod.pod->Key());
  }
  // 4. Report. Moves come before new nodes: pods that a move serves need no node.
  JsonObject json = PlanToJson(plan, options.objective, took).as_object();
  std::string text = PlanToText(plan, took, TableWidth());
  if (!claimed.empty()) json["claims"] = ClaimsToJson(claimed);
  text += ClaimsToText(claimed, TableWidth());
  if (further) {
    Further answers(flags, input, frameworks, options, Without(served, std::move(unplaced)));
    if (flags.moves > 0) answers.Moves(json, text);
    if (flags.with_pools) answers.Growth(json, text);
  }
  std::cout << (flags.output == "json" ? WriteJsonPretty(json) + "\n" : text);
  return Status::Ok();
}

}  // namespace

void AddPlanCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command =
      root.add_subcommand("plan", "Show the plan of nos for a cluster or a dump of one");
  auto flags = std::make_shared<PlanFlags>();
  command
      ->add_option(
          "-f,--file", flags->files,
          "Dump to read in place of a cluster: YAML or JSON of nodes, pods, pod groups, node "
          "pools; - reads stdin")
      ->option_text("FILE");
  AddClusterFlags(*command, flags->kubeconfig, flags->context);
  command->add_flag("--with-pools", flags->with_pools,
                    "Also show new nodes of node pools for pods without a place");
  command
      ->add_option(
          "--moves", flags->moves,
          "Also show moves of running pods, at most this many for each pod without a place")
      ->check(CLI::Range(1, 20))
      ->option_text("K");
  command
      ->add_option("--add-node", flags->change.add_nodes,
                   "Show which pods would start with a node more: of a NodePool, or like a node "
                   "(repeatable)")
      ->option_text("POOL|NODE");
  command
      ->add_option("--remove-node", flags->change.remove_nodes,
                   "Show which pods would have to go with a node less (repeatable)")
      ->option_text("NODE");
  command
      ->add_option("--quota", flags->change.quotas,
                   "Show what another min of a quota would change: NAMESPACE/NAME or a namespace; "
                   "RESOURCE is nos.nebuly.com/gpu-memory by default (repeatable)")
      ->option_text("QUOTA[:RESOURCE]=AMOUNT");
  command
      ->add_option("--objective", flags->objective,
                   "Served quantity to maximize: pods, compute or memory")
      ->check(CLI::IsMember({"pods", "compute", "memory"}))
      ->option_text("NAME");
  command->add_flag(
      "--audit", flags->audit,
      "Show how few GPUs and nodes the pods of any cluster need, with nos or without");
  command
      ->add_option("-o,--output", flags->output, "Output format: table or json; html with --audit")
      ->check(CLI::IsMember({"table", "json", "html"}))
      ->option_text("FORMAT");
  AddCatalogueFlag(*command, flags->catalogue);
  command
      ->add_option("--time-limit", flags->seconds,
                   "Time limit in seconds; when it expires, the best plan so far is used")
      ->check(CheckSeconds)
      ->capture_default_str();
  AddHoldAfterFlag(*command, flags->hold_after);
  command->footer(
      "Examples:\n"
      "  kubectl get nodes,pods -A -o yaml > cluster.yaml\n"
      "  nos plan -f cluster.yaml\n"
      "  nos plan -f cluster.yaml --audit -o html > audit.html\n"
      "  nos plan -f cluster.yaml -f more-pods.yaml --objective compute -o json\n"
      "  nos plan -f cluster.yaml --hold-after 0      keep no slots for long-pending pods\n"
      "  nos plan --moves 3 --with-pools              plan for the live cluster\n"
      "  nos plan --add-node gpu-1 --quota research=200");
  RunWhenChosen(*command, chosen, "nos plan", [flags] { return RunPlan(*flags); });
}

}  // namespace nos::cmd
