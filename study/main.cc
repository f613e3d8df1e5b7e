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
  command.add_option("-o,--output", output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
}

template <typename Report>
void Print(const Report& report, const std::string& output) {
  std::cout << (output == "json" ? WriteJsonPretty(ToJson(report)) + "\n"
                                 : ToText(report));
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
      "churn", "Requests for MIG slices come and go; how many does a policy accept?");
  auto flags = std::make_shared<ChurnFlags>();
  ChurnOptions& options = flags->options;
  command->add_option("--gpus", options.gpus, "How many GPUs")->capture_default_str();
  cmd::OfferWords(*command->add_option("--model", flags->model, "GPU model"), cmd::ModelNames(), false,
             "NAME [" + flags->model + "]");
  cmd::OfferWords(*command->add_option("--mix", options.mix,
                                  "uniform, skew-small, skew-big, bimodal, inference, or a FILE"),
             {"uniform", "skew-small", "skew-big", "bimodal", "inference"}, true,
             "NAME|FILE [" + options.mix + "]");
  command->add_option("--load", options.load, "Slots asked for / slots there")
      ->capture_default_str();
  command->add_option("--arrivals", options.arrivals, "How many requests")->capture_default_str();
  command->add_option("--seed", options.seed, "Of the random numbers")
      ->check(cmd::CheckSeed)
      ->capture_default_str();
  cmd::OfferWords(
      *command->add_option("--policy", flags->policy,
                           "nos, first-fit, best-fit, largest-free-run, placements-lost, repack"),
      {"nos", "first-fit", "best-fit", "largest-free-run", "placements-lost", "repack"}, false,
      "NAME [" + flags->policy + "]");
  command->add_option("--moves", options.moves, "Instances that may move for a blocked request")
      ->capture_default_str();
  AddOutput(*command, flags->output);
  command->footer(
      "Examples:\n"
      "  nos-study churn --mix inference --policy nos --moves 2\n"
      "  nos-study churn --mix inference --policy largest-free-run -o json");
  command->callback([&chosen, flags] {
    chosen.action = [flags] {
      const Status status = Run(*flags);
      return status.ok() ? 0 : cmd::Fail("nos-study churn", status);
    };
  });
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
      "openb", "Pack fractions of GPUs as the published openb protocol does");
  auto flags = std::make_shared<OpenbFlags>();
  command->add_option("--nodes", flags->nodes, "Node list (CSV)")->required()->option_text("FILE");
  command->add_option("--pods", flags->pods, "Pod list (CSV)")->required()->option_text("FILE");
  command->add_option("--inflation", flags->options.inflation, "GPUs asked for / GPUs there")
      ->capture_default_str();
  command->add_option("--seed", flags->options.seed, "Of the order of pods and nodes")
      ->check(cmd::CheckSeed)
      ->capture_default_str();
  cmd::OfferWords(
      *command->add_option("--policy", flags->policy, "nos, nos-scheduler, best-fit, random, fgd"),
      {"nos", "nos-scheduler", "best-fit", "random", "fgd"}, false, "NAME [" + flags->policy + "]");
  AddOutput(*command, flags->output);
  command->footer(
      "Example:\n"
      "  nos-study openb --nodes openb_node_list_gpu_node.csv --pods "
      "openb_pod_list_default.csv");
  command->callback([&chosen, flags] {
    chosen.action = [flags] {
      const Status status = Run(*flags);
      return status.ok() ? 0 : cmd::Fail("nos-study openb", status);
    };
  });
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
  CLI::Option* pods =
      command
          .add_option("--pods", flags.pods, "openb's pod list (CSV); without it: bursts of jobs")
          ->option_text("FILE");
  command.add_option("--first-day", trace.window.first_day, "Of the pod list, where it begins")
      ->needs(pods)
      ->capture_default_str();
  command.add_option("--days", flags.days, "How many [7 of the pod list, 14 of bursts]");
  cmd::OfferWords(
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

void AddScaling(CLI::App& root, cmd::Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "scaling", "Nodes come and go with a trace of jobs; what do they cost, who waits?");
  auto flags = std::make_shared<ScalingFlags>();
  ScalingStudyOptions& options = flags->options;
  AddScalingTrace(*command, *flags);
  cmd::OfferWords(*command->add_option("--policy", flags->policies,
                                  "unschedulable, unschedulable+packing, recut, recut+scale-down, "
                                  "all; several; each"),
             {"unschedulable", "unschedulable+packing", "recut", "recut+scale-down", "all"}, false,
             "NAME ...");
  std::vector<std::string> layouts;
  for (const StaticLayout& layout : StaticLayouts()) layouts.push_back(layout.name);
  cmd::OfferWords(*command->add_option("--layout", options.layout,
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
      ->check(cmd::CheckSeed)
      ->capture_default_str();
  command->add_option("--seeds", options.seeds, "How many seeds from there")->capture_default_str();
  command->add_flag("--equal-waiting", options.equal_waiting,
                    "Compare at equal waiting time, over many windows (slow)");
  AddOutput(*command, flags->output);
  command->footer(
      "Examples:\n"
      "  nos-study scaling --days 2 --slices 0.5\n"
      "  nos-study scaling --pods openb_pod_list_default.csv --seeds 3 --equal-waiting");
  command->callback([&chosen, flags] {
    chosen.action = [flags] {
      const Status status = Run(*flags);
      return status.ok() ? 0 : cmd::Fail("nos-study scaling", status);
    };
  });
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
  return nos::cmd::Main({"nos-study", "nos-study measures policies for GPUs without a cluster.",
                         nos::study::kExamples, nos::study::AddCommands},
                        argc, argv);
}
