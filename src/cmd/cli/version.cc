#include <CLI/CLI.hpp>
#include <iostream>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "gpu/catalogue.h"

namespace nos::cmd {

std::string VersionText() {
  return "nos " NOS_VERSION " (" + std::to_string(gpu::Catalogue::Builtin().models().size()) +
         " GPU models known)";
}

void AddVersionCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand("version", "Print the version");
  command->callback([&chosen] {
    chosen.action = [] {
      std::cout << VersionText() << "\n";
      return 0;
    };
  });
}

}  // namespace nos::cmd
