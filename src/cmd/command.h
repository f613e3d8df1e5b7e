// Command line of a program: subcommands, help, errors and exit codes. A subcommand is one function
// that declares its options and sets the action to run.
//
// Exit codes: 0 success, 1 the command ran and failed, 2 invalid flags, files or objects (one
// sentence on stderr, no partial result).
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

// The chosen subcommand sets `action` during parsing; Main runs it afterwards.
struct Chosen {
  std::function<int()> action;
};

std::string VersionText();

// Words that shell completion offers for the value of an option. With `or_file`, file names are
// offered too. Help shows `text` in place of the words.
void OfferWords(CLI::Option& option, const std::vector<std::string>& words, bool or_file,
                const std::string& text);

// Shell completion offers the names of a cluster's objects of this kind of `nos get`, in addition
// to files. Help shows `text`.
void OfferNames(CLI::Option& option, const std::string& kind, const std::string& text);

// Prints "nos plan: --old is deprecated, use --new" to stderr.
void WarnOfDeprecated(const std::string& command, const std::string& old_word,
                      const std::string& word);

// Accepts only an integer from 0 to 2^63-1 (a negative one would wrap around).
std::string CheckSeed(const std::string& text);

// --hold-after DURATION: pending time after which slots are kept free for a pod (hold_after
// of PlanOptions and of PartitionerConfig). `target` holds the default and must outlive
// parsing.
void AddHoldAfterFlag(CLI::App& command, Duration& target);

// --kubeconfig and --context, for commands that read a cluster. Both must outlive parsing.
void AddClusterFlags(CLI::App& command, std::string& kubeconfig, std::string& context);

// Makes `run` the action of the subcommand; its error is printed after `name`, as by Fail.
void RunWhenChosen(CLI::App& command, Chosen& chosen, std::string name,
                   std::function<Status()> run);

// A program with subcommands: `nos`, `nos-study`.
struct Program {
  std::string name, about, examples;
  std::function<void(CLI::App& root, Chosen& chosen)> add_commands;
};
// Parses the command line and runs the chosen subcommand. Returns the exit code.
int Main(const Program& program, int argc, char** argv);

// Same as ReadFile; "-" reads standard input.
Result<std::string> ReadFileOrStdin(const std::string& path);
// Prints "nos plan: <message>" to stderr and returns the exit code for the error.
int Fail(const std::string& command, const Status& error);

}  // namespace nos::cmd
