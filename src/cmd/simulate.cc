// nos simulate: how good the policies are (churn, openb, scaling) and how safe the controllers
// (chaos).
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <optional>

#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/terminal.h"
#include "sim/churn/churn.h"
#include "sim/openb/openb.h"
#include "sim/scaling/study.h"
#include "sim/scaling/unschedulable.h"
#include "sim/world/chaos.h"
#include "sim/world/specs.h"

namespace nos::cmd {
namespace {

void AddOutput(CLI::App& command, std::string& output) {
  command.add_option("-o,--output", output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
}

template <typename Report>
void Print(const Report& report, const std::string& output) {
  std::cout << (output == "json" ? WriteJsonPretty(sim::ToJson(report)) + "\n"
                                 : sim::ToText(report));
}

struct ChurnFlags {
  sim::ChurnOptions options;
  std::string model = "A100-40GB", policy = "nos", output = "table";
};

Status RunChurn(ChurnFlags flags) {
  NOS_ASSIGN(flags.options.model, sim::FindModel(gpu::Catalogue::Builtin(), flags.model));
  NOS_ASSIGN(flags.options.policy, sim::ParsePolicy(flags.policy));
  NOS_ASSIGN(const sim::ChurnReport report, sim::RunChurn(flags.options));
  Print(report, flags.output);
  return Status::Ok();
}

void AddChurn(CLI::App& simulate, Chosen& chosen) {
  CLI::App* command = simulate.add_subcommand(
      "churn", "Requests for MIG slices come and go; how many does a policy accept?");
  auto flags = std::make_shared<ChurnFlags>();
  sim::ChurnOptions& options = flags->options;
  command->add_option("--gpus", options.gpus, "How many GPUs")->capture_default_str();
  OfferWords(*command->add_option("--model", flags->model, "GPU model"), ModelNames(), false,
             "NAME [" + flags->model + "]");
  OfferWords(*command->add_option("--mix", options.mix,
                                  "uniform, skew-small, skew-big, bimodal, inference, or a FILE"),
             {"uniform", "skew-small", "skew-big", "bimodal", "inference"}, true,
             "NAME|FILE [" + options.mix + "]");
  command->add_option("--load", options.load, "Slots asked for / slots there")
      ->capture_default_str();
  command->add_option("--arrivals", options.arrivals, "How many requests")->capture_default_str();
  command->add_option("--seed", options.seed, "Of the random numbers")
      ->check(CheckSeed)
      ->capture_default_str();
  OfferWords(
      *command->add_option("--policy", flags->policy,
                           "nos, first-fit, best-fit, largest-free-run, placements-lost, repack"),
      {"nos", "first-fit", "best-fit", "largest-free-run", "placements-lost", "repack"}, false,
      "NAME [" + flags->policy + "]");
  command->add_option("--moves", options.moves, "Instances that may move for a blocked request")
      ->capture_default_str();
  AddOutput(*command, flags->output);
  command->footer(
      "Examples:\n"
      "  nos simulate churn --mix inference --policy nos --moves 2\n"
      "  nos simulate churn --mix inference --policy largest-free-run -o json");
  command->callback([&chosen, flags] {
    chosen.action = [flags] {
      const Status status = RunChurn(*flags);
      return status.ok() ? 0 : Fail("nos simulate churn", status);
    };
  });
}

struct OpenbFlags {
  sim::OpenbOptions options;
  std::string nodes, pods, policy = "nos", output = "table";
};

Status RunOpenb(OpenbFlags flags) {
  NOS_ASSIGN(const std::string nodes, ReadFileOrStdin(flags.nodes));
  NOS_ASSIGN(const std::string pods, ReadFileOrStdin(flags.pods));
  NOS_ASSIGN(flags.options.policy, sim::ParseOpenbPolicy(flags.policy));
  flags.options.nodes_text = nodes;
  flags.options.pods_text = pods;
  flags.options.nodes_name = flags.nodes;
  flags.options.pods_name = flags.pods;
  NOS_ASSIGN(const sim::OpenbReport report, sim::RunOpenb(flags.options));
  Print(report, flags.output);
  return Status::Ok();
}

void AddOpenb(CLI::App& simulate, Chosen& chosen) {
  CLI::App* command = simulate.add_subcommand(
      "openb", "Pack fractions of GPUs as the published openb protocol does");
  auto flags = std::make_shared<OpenbFlags>();
  command->add_option("--nodes", flags->nodes, "Node list (CSV)")->required()->option_text("FILE");
  command->add_option("--pods", flags->pods, "Pod list (CSV)")->required()->option_text("FILE");
  command->add_option("--inflation", flags->options.inflation, "GPUs asked for / GPUs there")
      ->capture_default_str();
  command->add_option("--seed", flags->options.seed, "Of the order of pods and nodes")
      ->check(CheckSeed)
      ->capture_default_str();
  OfferWords(
      *command->add_option("--policy", flags->policy, "nos, nos-scheduler, best-fit, random, fgd"),
      {"nos", "nos-scheduler", "best-fit", "random", "fgd"}, false, "NAME [" + flags->policy + "]");
  AddOutput(*command, flags->output);
  command->footer(
      "Example:\n"
      "  nos simulate openb --nodes openb_node_list_gpu_node.csv --pods "
      "openb_pod_list_default.csv");
  command->callback([&chosen, flags] {
    chosen.action = [flags] {
      const Status status = RunOpenb(*flags);
      return status.ok() ? 0 : Fail("nos simulate openb", status);
    };
  });
}

struct ScalingFlags {
  sim::ScalingStudyOptions options;
  std::string pods, by = "compute", output = "table";
  std::vector<std::string> policies;
  std::optional<double> days;  // none: as long as the trace's default
};

Status RunScaling(ScalingFlags flags) {
  sim::ScalingStudyOptions& options = flags.options;
  std::string pods;
  if (!flags.pods.empty()) {
    NOS_ASSIGN(pods, ReadFileOrStdin(flags.pods));
    options.trace.openb = {flags.pods, pods};
  }
  if (flags.days) options.trace.window.days = options.trace.bursts.days = *flags.days;
  options.trace.window.by_memory = flags.by == "memory";
  if (!flags.policies.empty()) options.policies.clear();
  for (const std::string& name : flags.policies) {
    NOS_ASSIGN(const sim::ScalingPolicy policy, sim::ParseScalingPolicy(name));
    options.policies.push_back(policy);
  }
  const bool screen = StderrDisplay().screen;
  if (screen) {
    options.on_progress = [](const std::string& text) {
      std::cerr << "\r\x1b[K" << text << std::flush;
    };
  }
  const Result<sim::ScalingStudy> study = sim::RunScalingStudy(options);
  if (screen) std::cerr << "\r\x1b[K";
  if (!study.ok()) return study.status();
  Print(*study, flags.output);
  return Status::Ok();
}

void AddScalingTrace(CLI::App& command, ScalingFlags& flags) {
  sim::ScalingTrace& trace = flags.options.trace;
  CLI::Option* pods =
      command
          .add_option("--pods", flags.pods, "openb's pod list (CSV); without it: bursts of jobs")
          ->option_text("FILE");
  command.add_option("--first-day", trace.window.first_day, "Of the pod list, where it begins")
      ->needs(pods)
      ->capture_default_str();
  command.add_option("--days", flags.days, "How many [7 of the pod list, 14 of bursts]");
  OfferWords(
      *command.add_option("--by", flags.by, "What a fraction of a GPU is of it: compute or memory")
           ->check(CLI::IsMember({"compute", "memory"})),
      {"compute", "memory"}, false, "NAME [" + flags.by + "]");
  command.add_option("--jobs-a-day", trace.bursts.jobs_a_day, "Of the bursts")
      ->excludes(pods)
      ->capture_default_str();
  command.add_option("--slices", trace.bursts.slices, "Part of the bursts that ask for slices")
      ->excludes(pods)
      ->capture_default_str();
}

void AddScaling(CLI::App& simulate, Chosen& chosen) {
  CLI::App* command = simulate.add_subcommand(
      "scaling", "Nodes come and go with a trace of jobs; what do they cost, who waits?");
  auto flags = std::make_shared<ScalingFlags>();
  sim::ScalingStudyOptions& options = flags->options;
  AddScalingTrace(*command, *flags);
  OfferWords(*command->add_option("--policy", flags->policies,
                                  "unschedulable, unschedulable+packing, recut, recut+scale-down, "
                                  "all; several; each"),
             {"unschedulable", "unschedulable+packing", "recut", "recut+scale-down", "all"}, false,
             "NAME ...");
  std::vector<std::string> layouts;
  for (const sim::StaticLayout& layout : sim::StaticLayouts()) layouts.push_back(layout.name);
  OfferWords(*command->add_option("--layout", options.layout,
                                  "How nodes of unschedulable are cut: whole, 7x1g, 3x2g+1g, 2x3g, "
                                  "4g+3g, balanced; each"),
             layouts, false, "NAME");
  command->add_option("--window", options.run.window, "Seconds until an unneeded node goes")
      ->capture_default_str();
  command->add_option("--start-seconds", options.run.start_seconds, "Until a node takes jobs")
      ->capture_default_str();
  command->add_option("--restart-seconds", options.run.restart_seconds, "Lost by a job that moves")
      ->capture_default_str();
  command->add_option("--cut-seconds", options.run.cut_seconds, "Until a GPU is cut anew")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "The first; of the bursts, or the part of the list")
      ->check(CheckSeed)
      ->capture_default_str();
  command->add_option("--seeds", options.seeds, "How many seeds from there")->capture_default_str();
  command->add_flag("--equal-waiting", options.equal_waiting,
                    "Compare at equal waiting time, over many windows (slow)");
  AddOutput(*command, flags->output);
  command->footer(
      "Examples:\n"
      "  nos simulate scaling --days 2 --slices 0.5\n"
      "  nos simulate scaling --pods openb_pod_list_default.csv --seeds 3 --equal-waiting");
  command->callback([&chosen, flags] {
    chosen.action = [flags] {
      const Status status = RunScaling(*flags);
      return status.ok() ? 0 : Fail("nos simulate scaling", status);
    };
  });
}

struct ChaosFlags {
  sim::ChaosOptions options;
  uint64_t seeds = 1;
  bool verbose = false;
};

int RunChaos(ChaosFlags flags) {
  const uint64_t first = flags.options.seed;
  uint64_t failed = 0;
  if (flags.verbose) {
    flags.options.on_event = [](std::string_view line) { std::cout << line << "\n"; };
  }
  for (uint64_t i = 0; i < flags.seeds; ++i) {
    flags.options.seed = first + i;
    if (StderrDisplay().screen) std::cerr << fmt::format("\rseed {} of {}", i + 1, flags.seeds);
    const sim::ChaosReport report = sim::RunChaos(flags.options);
    failed += report.ok() ? 0 : 1;
    if (!report.ok() || flags.seeds == 1) std::cout << sim::FormatChaosReport(report);
  }
  if (StderrDisplay().screen) std::cerr << "\r\x1b[K";
  if (flags.seeds > 1) {
    std::cout << fmt::format("{} passed, {} failed\n", flags.seeds - failed, failed);
  }
  return failed == 0 ? 0 : kExitFailed;
}

void AddChaos(CLI::App& simulate, Chosen& chosen) {
  CLI::App* command = simulate.add_subcommand(
      "chaos", "A small cluster while everything goes wrong; are the promises kept?");
  auto flags = std::make_shared<ChaosFlags>();
  command->add_option("--seed", flags->options.seed, "First seed")
      ->check(CheckSeed)
      ->capture_default_str();
  command->add_option("--seeds", flags->seeds, "How many seeds from there")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--scheduler-cuts", flags->options.scheduler_cuts,
                    "Pods are bound by nos scheduler, which has GPUs cut for them itself");
  command->add_flag("--mps", flags->options.mps, "GPUs of some nodes are shared by MPS");
  command->add_flag("--hybrid", flags->options.hybrid,
                    "GPUs of some nodes are each used in their own way");
  command->add_flag("--resets", flags->options.resets,
                    "With --hybrid: agents reset GPUs that change MIG mode with a reset only");
  command->add_flag("--pools", flags->options.pools,
                    "Nodes of pools come and go, and an autoscaler asks for them");
  command->add_flag("-v,--verbose", flags->verbose, "Print every event");
  command->footer(
      "Examples:\n"
      "  nos simulate chaos --seed 17 --verbose\n"
      "  nos simulate chaos --seed 1 --seeds 200");
  command->callback([&chosen, flags] { chosen.action = [flags] { return RunChaos(*flags); }; });
}

}  // namespace

void AddSimulateCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* simulate =
      root.add_subcommand("simulate", "Measure policies and controllers without a cluster");
  simulate->require_subcommand(1);
  simulate->footer(
      "Examples:\n"
      "  nos simulate churn --gpus 100 --model A100-40GB --mix uniform --load 0.95\n"
      "  nos simulate openb --nodes nodes.csv --pods pods.csv --policy nos\n"
      "  nos simulate scaling --days 2 --slices 0.5\n"
      "  nos simulate chaos --seed 17 --verbose");
  AddChurn(*simulate, chosen);
  AddOpenb(*simulate, chosen);
  AddScaling(*simulate, chosen);
  AddChaos(*simulate, chosen);
}

}  // namespace nos::cmd
