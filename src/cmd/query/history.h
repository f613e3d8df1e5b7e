// nos get history, a part of nos get.
#pragma once

#include "cmd/command.h"

namespace nos::cmd {

void AddHistoryCommand(CLI::App& get, Chosen& chosen);

}  // namespace nos::cmd
