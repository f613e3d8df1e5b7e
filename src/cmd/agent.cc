// nos agent: on a node with GPUs.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cmd/command.h"
#include "codec/json.h"
#include "device/describe.h"

namespace nos::cmd {
namespace {

struct AgentFlags {
  bool once = false, print = false;
  std::string output = "table", library;
};

int PrintMachine(const AgentFlags& flags) {
  const auto library = device::NvmlLibrary::Open(flags.library);
  if (!library.ok()) return Fail("nos agent", library.status());
  device::NvmlBackend backend(**library, gpu::Catalogue::Builtin());
  const auto node = device::Describe(backend, gpu::Catalogue::Builtin());
  if (!node.ok()) return Fail("nos agent", node.status());
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(device::DescriptionJson(*node)) << "\n";
  } else {
    std::cout << device::DescriptionText(*node);
  }
  return 0;
}

}  // namespace

void AddAgentCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command =
      root.add_subcommand("agent", "Show the GPUs of this machine as the agent sees them");
  auto flags = std::make_shared<AgentFlags>();
  command->add_flag("--once", flags->once, "Look once and end")->required();
  command->add_flag("--print", flags->print, "Print what is there and change nothing")->required();
  command->add_option("-o,--output", flags->output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
  command
      ->add_option("--nvml-library", flags->library,
                   "Default: $NOS_NVML_LIBRARY or libnvidia-ml.so.1")
      ->option_text("FILE");
  command->footer("Example:\n  nos agent --once --print -o json");
  command->callback([&chosen, flags] { chosen.action = [flags] { return PrintMachine(*flags); }; });
}

}  // namespace nos::cmd
