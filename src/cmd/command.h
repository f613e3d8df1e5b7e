// How a subcommand plugs into `nos`: one file a subcommand, with a function that declares its
// options and sets the action to run. Wiring only; the work is done by the rooms below.
//
// Exit codes: 0 done, 1 ran but failed, 2 wrong flags, files or objects (one sentence on stderr,
// nothing half done).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace nos::cmd {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Filled by the chosen subcommand while parsing; run afterwards.
struct Chosen {
  std::function<int()> action;
};

void AddSandboxCommand(CLI::App& root, Chosen& chosen);
void AddPlanCommand(CLI::App& root, Chosen& chosen);
void AddSimulateCommand(CLI::App& root, Chosen& chosen);
void AddGetCommand(CLI::App& root, Chosen& chosen);
void AddTopCommand(CLI::App& root, Chosen& chosen);
void AddExplainCommand(CLI::App& root, Chosen& chosen);
void AddPartitionerCommand(CLI::App& root, Chosen& chosen);
void AddAgentCommand(CLI::App& root, Chosen& chosen);
void AddSchedulerCommand(CLI::App& root, Chosen& chosen);
void AddOperatorCommand(CLI::App& root, Chosen& chosen);
void AddAutoscalerCommand(CLI::App& root, Chosen& chosen);
void AddHoldCommand(CLI::App& root, Chosen& chosen);
void AddTelemetryCommand(CLI::App& root, Chosen& chosen);
void AddVersionCommand(CLI::App& root, Chosen& chosen);
void AddCompletionCommand(CLI::App& root, Chosen& chosen);

std::string VersionText();

// Words that shell completion offers for an option's value; `or_file`: a file's name does too.
// Help shows `text` instead of them.
void OfferWords(CLI::Option& option, const std::vector<std::string>& words, bool or_file,
                const std::string& text);

// Refuses what is not a whole number from 0 to 2^63-1 (a negative one would wrap around).
std::string CheckSeed(const std::string& text);

// --hold-after DURATION: past which wait slots are kept free for a pod (PlanOptions and
// PartitionerConfig: starvation_after). `target` holds the default and must outlive the parsing.
void AddHoldAfterFlag(CLI::App& command, Duration& target);

// Parses the command line and runs what was chosen. Returns the exit code.
int Main(int argc, char** argv);

// As ReadFile; "-" is standard input.
Result<std::string> ReadFileOrStdin(const std::string& path);
// Prints "nos plan: <message>" to stderr and returns the exit code that fits the error.
int Fail(const std::string& command, const Status& error);

}  // namespace nos::cmd
