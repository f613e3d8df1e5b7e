#include "cmd/command.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>

#include "base/file.h"
#include "base/table.h"
#include "base/text.h"

namespace nos::cmd {
namespace {

// Returns "nos simulate: unknown command 'x'" if a word before the first flag is not a command
// where one is expected, else "". `path` is the command path before `words`.
std::string UnknownCommand(const CLI::App& root, std::string path,
                           const std::vector<std::string>& words) {
  const CLI::App* at = &root;
  for (const std::string& word : words) {
    const auto commands = at->get_subcommands([](const CLI::App*) { return true; });
    if (word.starts_with('-') || commands.empty()) break;
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
      return command->check_name(word);
    });
    if (found == commands.end()) return path + ": unknown command '" + Printable(word) + "'";
    path += " " + (*found)->get_name();
    at = *found;
  }
  return "";
}

// True if the words name a command that only groups others, and no word follows.
bool IsBareGroup(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* at = &root;
  for (const std::string& word : words) {
    const auto named =
        at->get_subcommands([&](const CLI::App* command) { return command->check_name(word); });
    if (named.empty()) return false;
    at = named.front();
  }
  return at->get_require_subcommand_min() > 0;
}

// True if all output was written. A closed pipe counts as success: its reader has read enough.
bool OutputArrived() {
  const bool written = std::cout.flush().good() && std::fflush(stdout) == 0;
  pollfd output{STDOUT_FILENO, 0, 0};
  return written || (poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0);
}

// CLI11 appends its own advice on further lines of some messages; only the first sentence is shown.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string CommandPath(const CLI::App& root) {
  std::string path = root.get_name();
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

}  // namespace

Result<std::string> ReadFileOrStdin(const std::string& path) {
  if (path != "-") return ReadFile(path);
  return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
}

std::string CheckSeed(const std::string& text) {
  const auto value = ParseInt(text);
  return value && *value >= 0 ? "" : "'" + text + "' is not an integer from 0 to 2^63-1";
}

void AddHoldAfterFlag(CLI::App& command, Duration& target) {
  const auto check = [](const std::string& text) -> std::string {
    constexpr Duration kMaxHoldAfter = std::chrono::hours(24 * 365);
    const Result<Duration> wait = ParseDuration(text);
    if (!wait.ok()) return wait.status().message();
    if (*wait >= Duration::zero() && *wait <= kMaxHoldAfter) return "";
    return "'" + text + "' is not a duration from 0 to 8760h";
  };
  command
      .add_option_function<std::string>(
          "--hold-after", [&target](const std::string& text) { target = *ParseDuration(text); },
          "Keep slots free for a pod that has been pending for this long; 0 disables it")
      ->check(check)
      ->option_text("DURATION [" + FormatAge(target) + "]");
}

void AddClusterFlags(CLI::App& command, std::string& kubeconfig, std::string& context) {
  command
      .add_option("--kubeconfig", kubeconfig,
                  "Path of the kubeconfig; default: $KUBECONFIG or ~/.kube/config")
      ->option_text("FILE");
  command
      .add_option("--context", context, "Kubeconfig context to use; default: the current context")
      ->option_text("NAME");
}

void RunWhenChosen(CLI::App& command, Chosen& chosen, std::string name,
                   std::function<Status()> run) {
  command.callback([&chosen, name = std::move(name), run = std::move(run)] {
    chosen.action = [name, run] {
      const Status ran = run();
      return ran.ok() ? 0 : Fail(name, ran);
    };
  });
}

void OfferWords(CLI::Option& option, const std::vector<std::string>& words, bool or_file,
                const std::string& text) {
  option.type_name("{" + Join(words, ",") + "}" + (or_file ? "FILE" : ""));
  option.option_text(text);
}

void OfferNames(CLI::Option& option, const std::string& kind, const std::string& text) {
  option.type_name("<" + kind + ">");
  option.option_text(text);
}

void WarnOfDeprecated(const std::string& command, const std::string& old_word,
                      const std::string& word) {
  std::cerr << command << ": " << old_word << " is deprecated, use " << word << "\n";
}

int Fail(const std::string& command, const Status& error) {
  std::cerr << command << ": " << Printable(error.message()) << "\n";
  const bool usage = error.code() == Code::kInvalid || error.code() == Code::kNotFound;
  return usage ? kExitUsage : kExitFailed;
}

namespace {

int Run(const Program& program, int argc, char** argv) {
  CLI::App root(program.about, program.name);
  root.require_subcommand(1);
  root.get_formatter()->column_width(38);
  Chosen chosen;
  program.add_commands(root, chosen);
  // After the subcommands, which would inherit it.
  root.footer("Examples:\n" + program.examples + "\nHelp for a command: " + program.name +
              " COMMAND --help");
  root.set_version_flag("--version", VersionText());
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool about = !words.empty() && words.front() == "help";
  if (about) {  // nos help plan: same as nos plan --help
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (const std::string unknown =
          UnknownCommand(root, program.name + (about ? " help" : ""), words);
      !unknown.empty()) {
    std::cerr << unknown << " (try --help)\n";
    return kExitUsage;
  }
  if (IsBareGroup(root, words)) words.emplace_back("--help");
  std::reverse(words.begin(), words.end());  // CLI11 expects reverse order
  try {
    root.parse(std::move(words));
  } catch (const CLI::Success& help) {
    return root.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << CommandPath(root) << ": " << Printable(FirstLine(error.what()))
              << " (try --help)\n";
    return kExitUsage;
  }
  try {
    return chosen.action();
  } catch (const std::exception& error) {
    std::cerr << CommandPath(root) << ": internal error: " << error.what()
              << "; please report this with the command and its input\n";
    return kExitFailed;
  }
}

}  // namespace

int Main(const Program& known, int argc, char** argv) {
  Program program = known;
  // kubectl runs a program kubectl-nos for "kubectl nos"; it may be a link to nos.
  const std::string_view called = argc > 0 ? std::string_view(argv[0]) : std::string_view();
  if (called.substr(called.rfind('/') + 1) == "kubectl-" + program.name) {
    program.name = "kubectl " + program.name;
  }
  // With standard output closed, the first file opened would get its descriptor and receive the
  // output.
  if (fcntl(STDOUT_FILENO, F_GETFD) == -1) {
    std::cerr << program.name << ": standard output is closed\n";
    return kExitFailed;
  }
  const int code = Run(program, argc, argv);
  if (OutputArrived()) return code;
  std::cerr << program.name << ": failed to write to standard output\n";
  return code == 0 ? kExitFailed : code;
}

}  // namespace nos::cmd
