#include <CLI/CLI.hpp>
#include <iostream>

#include "cmd/command.h"
#include "gpu/catalogue.h"

namespace nos::cmd {

void AddVersionCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand("version", "Print the version");
  command->callback([&chosen] {
    chosen.action = [] {
      std::cout << "nos " NOS_VERSION " (" << gpu::Catalogue::Builtin().models().size()
                << " GPU models known)\n";
      return 0;
    };
  });
}

}  // namespace nos::cmd
