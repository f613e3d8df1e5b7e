// nos telemetry backup, restore and verify: the server's database as a file.
#pragma once

#include <string>

#include "base/status.h"
#include "cmd/command.h"

namespace nos::cmd {

// Adds the commands to `telemetry`. `store_of`: the database of a server with this configuration
// file; "": of one without.
void AddBackupCommands(CLI::App& telemetry, Chosen& chosen,
                       Result<std::string> (*store_of)(const std::string& config));

}  // namespace nos::cmd
