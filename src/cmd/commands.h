// The subcommands of `nos`, one function each.
#pragma once

#include "cmd/command.h"

namespace nos::cmd {

void AddSandboxCommand(CLI::App& root, Chosen& chosen);
void AddPlanCommand(CLI::App& root, Chosen& chosen);
void AddSimulateCommand(CLI::App& root, Chosen& chosen);
void AddGetCommand(CLI::App& root, Chosen& chosen);
void AddStoriesCommand(CLI::App& root, Chosen& chosen);  // after AddGetCommand
void AddStatusCommand(CLI::App& root, Chosen& chosen);
void AddCostCommand(CLI::App& root, Chosen& chosen);
void AddReportCommand(CLI::App& root, Chosen& chosen);
void AddTopCommand(CLI::App& root, Chosen& chosen);
void AddExplainCommand(CLI::App& root, Chosen& chosen);
void AddCheckCommand(CLI::App& root, Chosen& chosen);
void AddPartitionerCommand(CLI::App& root, Chosen& chosen);
void AddAgentCommand(CLI::App& root, Chosen& chosen);
void AddSchedulerCommand(CLI::App& root, Chosen& chosen);
void AddOperatorCommand(CLI::App& root, Chosen& chosen);
void AddAutoscalerCommand(CLI::App& root, Chosen& chosen);
void AddMpsCommand(CLI::App& root, Chosen& chosen);
void AddHoldCommand(CLI::App& root, Chosen& chosen);
void AddTelemetryCommand(CLI::App& root, Chosen& chosen);
void AddUninstallCommand(CLI::App& root, Chosen& chosen);
void AddVersionCommand(CLI::App& root, Chosen& chosen);
void AddCompletionCommand(CLI::App& root, Chosen& chosen);

}  // namespace nos::cmd
