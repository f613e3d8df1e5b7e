// The command line of a program: subcommands, help, errors, exit codes. A subcommand is one function
// that declares its options and sets the action to run.
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

// A program with subcommands: `nos`, `nos-study`.
struct Program {
  std::string name, about, examples;
  std::function<void(CLI::App& root, Chosen& chosen)> add_commands;
};
// Parses the command line and runs the chosen subcommand. Returns the exit code.
int Main(const Program& program, int argc, char** argv);

// As ReadFile; "-" is standard input.
Result<std::string> ReadFileOrStdin(const std::string& path);
// Prints "nos plan: <message>" to stderr and returns the exit code that fits the error.
int Fail(const std::string& command, const Status& error);

}  // namespace nos::cmd
