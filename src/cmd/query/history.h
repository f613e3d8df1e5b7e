// nos get history, a subcommand of nos get.
#pragma once

#include "cmd/command.h"

namespace nos::cmd {

void AddHistoryCommand(CLI::App& get, Chosen& chosen);

}  // namespace nos::cmd
