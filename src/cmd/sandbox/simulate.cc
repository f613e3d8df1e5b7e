// nos simulate: checks that the controllers keep their invariants under faults.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/terminal.h"
#include "sim/chaos.h"

namespace nos::cmd {
namespace {

// Replaces this process by another program, found beside it or in PATH. Returns only on failure.
Status Become(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::error_code none;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::string beside = (self.parent_path() / words.front()).string();
  execv(beside.c_str(), argv.data());
  execvp(words.front().c_str(), argv.data());
  return Status(Code::kNotFound,
                words.front() +
                    " is neither beside nos nor in PATH: it is built with nos from the sources "
                    "(script/test); container images do not have it");
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
      "chaos", "Run a small cluster under random faults and check the controllers' invariants");
  auto flags = std::make_shared<ChaosFlags>();
  command->add_option("--seed", flags->options.seed, "First seed")
      ->check(CheckSeed)
      ->capture_default_str();
  command->add_option("--seeds", flags->seeds, "Number of seeds, counted from the first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--scheduler-partitions", flags->options.scheduler_partitions,
                    "nos scheduler binds the pods and partitions GPUs for them");
  command
      ->add_flag_callback("--scheduler-cuts",
                          [flags] {
                            flags->options.scheduler_partitions = true;
                            WarnOfDeprecated("nos simulate chaos", "--scheduler-cuts",
                                             "--scheduler-partitions");
                          })
      ->group("");
  command->add_flag("--mps", flags->options.mps, "Some nodes share GPUs by MPS");
  CLI::Option* hybrid = command->add_flag("--hybrid", flags->options.hybrid,
                                          "Some nodes choose a sharing mode for each GPU");
  command
      ->add_flag("--resets", flags->options.resets,
                 "With --hybrid: agents reset GPUs that need a reset to change MIG mode")
      ->needs(hybrid);
  command->add_flag("--pools", flags->options.pools,
                    "An autoscaler adds and removes nodes of pools");
  command->add_flag(
      "--claims", flags->options.claims,
      "Some nodes have a driver of Dynamic Resource Allocation, and pods claim devices");
  command
      ->add_flag("--hostile-tenant", flags->options.hostile_tenant,
                 "A tenant borrows another's guarantee and does all that it may to keep it")
      ->excludes("--claims")
      ->excludes("--mps")
      ->excludes("--hybrid")
      ->excludes("--pools");
  command
      ->add_flag("--stolen-node", flags->options.stolen_node,
                 "A thief writes all that the token of one node's agent may write")
      ->excludes("--hostile-tenant");
  command
      ->add_flag("--lost-device", flags->options.lost_device,
                 "Calls to the driver for some GPUs do not return")
      ->excludes("--claims")
      ->excludes("--hostile-tenant")
      ->excludes("--stolen-node");
  command->add_flag("-v,--verbose", flags->verbose, "Print every event and every write");
  command->footer(
      "Examples:\n"
      "  nos simulate chaos --seed 17 --verbose\n"
      "  nos simulate chaos --seed 1 --seeds 200");
  command->callback([&chosen, flags] { chosen.action = [flags] { return RunChaos(*flags); }; });
}

// The studies are a separate program. Their old names still start it for one minor version.
void AddMoved(CLI::App& simulate, Chosen& chosen, const std::string& study) {
  CLI::App* command = simulate.add_subcommand(study, "Deprecated: use nos-study " + study);
  command->group("");
  command->set_help_flag();
  command->prefix_command();
  command->callback([&chosen, command, study] {
    chosen.action = [command, study] {
      std::cerr << "nos simulate " << study << ": deprecated, use nos-study " << study << "\n";
      std::vector<std::string> words = {"nos-study", study};
      for (const std::string& word : command->remaining()) words.push_back(word);
      return Fail("nos simulate " + study, Become(words));
    };
  });
}

}  // namespace

void AddSimulateCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* simulate = root.add_subcommand("simulate", "Run the controllers without a cluster");
  simulate->require_subcommand(1);
  simulate->footer(
      "Examples:\n"
      "  nos simulate chaos --seed 17 --verbose");
  AddChaos(*simulate, chosen);
  for (const char* study : {"churn", "openb", "scaling"}) AddMoved(*simulate, chosen, study);
}

}  // namespace nos::cmd
