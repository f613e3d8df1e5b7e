// nos-study: measures how well policies pack GPUs (churn, openb), and the cost of nodes that scale
// with demand (scaling).
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/terminal.h"
#include "sim/specs.h"
#include "study/churn/simulation.h"
#include "study/openb/replay.h"
#include "study/scaling/study.h"
#include "study/scaling/unschedulable.h"

namespace nos::study {
namespace {

void AddOutput(CLI::App& command, std::string& output) {
  command.add_option("-o,--output", output, "Output format: table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
}

template <typename Report>
void Print(const Report& report, const std::string& output) {
  std::cout << (output == "json" ? WriteJsonPretty(ToJson(report)) + "\n" : ToText(report));
}

struct ChurnFlags {
  ChurnOptions options;
  std::string model = "A100-40GB", policy = "nos", output = "table";
};

Status Run(ChurnFlags flags) {
  NOS_ASSIGN(flags.options.model, sim::FindModel(gpu::Catalogue::Builtin(), flags.model));
  NOS_ASSIGN(flags.options.policy, ParsePolicy(flags.policy));
  NOS_ASSIGN(const ChurnReport report, RunChurn(flags.options));
  Print(report, flags.output);
  return Status::Ok();
}

void AddChurn(CLI::App& root, cmd::Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "churn", "Simulate requests for MIG slices; report how many a policy accepts");
  auto flags = std::make_shared<ChurnFlags>();
  ChurnOptions& options = flags->options;
  command->add_option("--gpus", options.gpus, "Number of GPUs")->capture_default_str();
  cmd::OfferWords(*command->add_option("--model", flags->model, "GPU model"), cmd::ModelNames(),
                  false, "NAME [" + flags->model + "]");
  cmd::OfferWords(
      *command->add_option("--mix", options.mix,
                           "Demand: uniform, skew-small, skew-big, bimodal, inference, or a FILE"),
      {"uniform", "skew-small", "skew-big", "bimodal", "inference"}, true,
      "NAME|FILE [" + options.mix + "]");
  command->add_option("--load", options.load, "Requested slots / slots of all GPUs")
      ->capture_default_str();
  command->add_option("--arrivals", options.arrivals, "Number of requests")->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of the random numbers")
      ->check(cmd::CheckSeed)
      ->capture_default_str();
  cmd::OfferWords(
      *command->add_option(
          "--policy", flags->policy,
          "Placement: nos, first-fit, best-fit, largest-free-run, placements-lost, repack"),
      {"nos", "first-fit", "best-fit", "largest-free-run", "placements-lost", "repack"}, false,
      "NAME [" + flags->policy + "]");
  command
      ->add_option("--moves", options.moves,
                   "Maximum number of instances moved for a blocked request")
      ->capture_default_str();
  command->add_flag(
      "--claims", options.claims,
      "Requests are ResourceClaims for devices as NVIDIA's DRA driver publishes them; "
      "policies nos and first-fit (kube-scheduler's order)");
  command->add_option("--node-gpus", options.node_gpus, "With --claims: GPUs of a node")
      ->capture_default_str();
  AddOutput(*command, flags->output);
  command->footer(
      "Examples:\n"
      "  nos-study churn --mix inference --policy nos --moves 2\n"
      "  nos-study churn --mix inference --policy largest-free-run -o json");
  cmd::RunWhenChosen(*command, chosen, "nos-study churn", [flags] { return Run(*flags); });
}

struct OpenbFlags {
  OpenbOptions options;
  std::string nodes, pods, policy = "nos", output = "table";
};

Status Run(OpenbFlags flags) {
  NOS_ASSIGN(const std::string nodes, cmd::ReadFileOrStdin(flags.nodes));
  NOS_ASSIGN(const std::string pods, cmd::ReadFileOrStdin(flags.pods));
  NOS_ASSIGN(flags.options.policy, ParseOpenbPolicy(flags.policy));
  flags.options.nodes_text = nodes;
  flags.options.pods_text = pods;
  flags.options.nodes_name = flags.nodes;
  flags.options.pods_name = flags.pods;
  NOS_ASSIGN(const OpenbReport report, RunOpenb(flags.options));
  Print(report, flags.output);
  return Status::Ok();
}

void AddOpenb(CLI::App& root, cmd::Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "openb", "Run the published openb protocol for packing fractions of GPUs");
  auto flags = std::make_shared<OpenbFlags>();
  command->add_option("--nodes", flags->nodes, "Node list (CSV)")->required()->option_text("FILE");
  command->add_option("--pods", flags->pods, "Pod list (CSV)")->required()->option_text("FILE");
  command->add_option("--inflation", flags->options.inflation, "Requested GPUs / GPUs of all nodes")
      ->capture_default_str();
  command->add_option("--seed", flags->options.seed, "Seed of the order of pods and nodes")
      ->check(cmd::CheckSeed)
      ->capture_default_str();
  cmd::OfferWords(*command->add_option("--policy", flags->policy,
                                       "Placement: nos, nos-scheduler, best-fit, random, fgd"),
                  {"nos", "nos-scheduler", "best-fit", "random", "fgd"}, false,
                  "NAME [" + flags->policy + "]");
  AddOutput(*command, flags->output);
  command->footer(
      "Example:\n"
      "  nos-study openb --nodes openb_node_list_gpu_node.csv --pods "
      "openb_pod_list_default.csv");
  cmd::RunWhenChosen(*command, chosen, "nos-study openb", [flags] { return Run(*flags); });
}

struct ScalingFlags {
  ScalingStudyOptions options;
  std::string pods, by = "compute", output = "table";
  std::vector<std::string> policies;
  std::optional<double> days;  // unset: the default of the trace
};

Status Run(ScalingFlags flags) {
  ScalingStudyOptions& options = flags.options;
  std::string pods;
  if (!flags.pods.empty()) {
    NOS_ASSIGN(pods, cmd::ReadFileOrStdin(flags.pods));
    options.trace.openb = {flags.pods, pods};
  }
  if (flags.days) options.trace.window.days = options.trace.bursts.days = *flags.days;
  options.trace.window.by_memory = flags.by == "memory";
  if (!flags.policies.empty()) options.policies.clear();
  for (const std::string& name : flags.policies) {
    NOS_ASSIGN(const ScalingPolicy policy, ParseScalingPolicy(name));
    options.policies.push_back(policy);
    const std::string current(ScalingPolicyName(policy));
    if (name != current) cmd::WarnOfDeprecated("nos-study scaling", name, current);
  }
  const bool screen = cmd::StderrDisplay().screen;
  if (screen) {
    options.on_progress = [](const std::string& text) {
      std::cerr << "\r\x1b[K" << text << std::flush;
    };
  }
  const Result<ScalingStudy> study = RunScalingStudy(options);
  if (screen) std::cerr << "\r\x1b[K";
  if (!study.ok()) return study.status();
  Print(*study, flags.output);
  return Status::Ok();
}

void AddScalingTrace(CLI::App& command, ScalingFlags& flags) {
  ScalingTrace& trace = flags.options.trace;
  CLI::Option* pods = command
                          .add_option("--pods", flags.pods,
                                      "Pod list of openb (CSV); default: random bursts of jobs")
                          ->option_text("FILE");
  command.add_option("--first-day", trace.window.first_day, "First day of the pod list")
      ->needs(pods)
      ->capture_default_str();
  command.add_option("--days", flags.days, "Number of days [7 with --pods, 14 without]");
  cmd::OfferWords(
      *command.add_option("--by", flags.by, "Meaning of a fraction of a GPU: compute or memory")
           ->check(CLI::IsMember({"compute", "memory"})),
      {"compute", "memory"}, false, "NAME [" + flags.by + "]");
  command.add_option("--jobs-a-day", trace.bursts.jobs_a_day, "Jobs per day in bursts")
      ->excludes(pods)
      ->capture_default_str();
  command
      .add_option("--slices", trace.bursts.slices,
                  "Share of the bursts that request slices, 0 to 1")
      ->excludes(pods)
      ->capture_default_str();
}

void AddScaling(CLI::App& root, cmd::Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "scaling", "Simulate scaling nodes for a trace of jobs; report cost and waiting time");
  auto flags = std::make_shared<ScalingFlags>();
  ScalingStudyOptions& options = flags->options;
  AddScalingTrace(*command, *flags);
  cmd::OfferWords(
      *command->add_option("--policy", flags->policies,
                           "One or more of unschedulable, unschedulable+packing, repartition, "
                           "repartition+scale-down, all; default: each"),
      {"unschedulable", "unschedulable+packing", "repartition", "repartition+scale-down", "all"},
      false, "NAME ...");
  std::vector<std::string> layouts;
  for (const StaticLayout& layout : StaticLayouts()) layouts.push_back(layout.name);
  cmd::OfferWords(
      *command->add_option("--layout", options.layout,
                           "Static layout of unschedulable's GPUs: whole, 7x1g, 3x2g+1g, 2x3g, "
                           "4g+3g, balanced; default: each"),
      layouts, false, "NAME");
  command->add_option("--window", options.run.window, "Seconds until an unneeded node is removed")
      ->capture_default_str();
  command
      ->add_option("--start-seconds", options.run.start_seconds,
                   "Seconds from request to ready node")
      ->capture_default_str();
  command
      ->add_option("--restart-seconds", options.run.restart_seconds,
                   "Seconds that a job loses by a move")
      ->capture_default_str();
  command
      ->add_option("--repartition-seconds", options.run.repartition_seconds,
                   "Seconds to repartition a GPU")
      ->capture_default_str();
  command->add_option("--cut-seconds", options.run.repartition_seconds)
      ->each([](const std::string&) {
        cmd::WarnOfDeprecated("nos-study scaling", "--cut-seconds", "--repartition-seconds");
      })
      ->group("");
  command
      ->add_option("--seed", options.seed, "First seed: of the bursts, or the part of the pod list")
      ->check(cmd::CheckSeed)
      ->capture_default_str();
  command->add_option("--seeds", options.seeds, "Number of seeds")->capture_default_str();
  command->add_flag("--equal-waiting", options.equal_waiting,
                    "Compare policies at equal waiting time, over many windows (slow)");
  AddOutput(*command, flags->output);
  command->footer(
      "Examples:\n"
      "  nos-study scaling --days 2 --slices 0.5\n"
      "  nos-study scaling --pods openb_pod_list_default.csv --seeds 3 --equal-waiting");
  cmd::RunWhenChosen(*command, chosen, "nos-study scaling", [flags] { return Run(*flags); });
}

constexpr const char* kExamples =
    "  nos-study churn --gpus 100 --model A100-40GB --mix uniform --load 0.95\n"
    "  nos-study openb --nodes nodes.csv --pods pods.csv --policy nos\n"
    "  nos-study scaling --days 2 --slices 0.5";

void AddCommands(CLI::App& root, cmd::Chosen& chosen) {
  AddChurn(root, chosen);
  AddOpenb(root, chosen);
  AddScaling(root, chosen);
}

}  // namespace
}  // namespace nos::study

int main(int argc, char** argv) {
  return nos::cmd::Main(
      {"nos-study", "nos-study measures GPU scheduling policies without a cluster.",
       nos::study::kExamples, nos::study::AddCommands},
      argc, argv);
}
