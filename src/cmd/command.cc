#include "cmd/command.h"

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

constexpr const char* kFooter =
    "Examples:\n"
    "  nos sandbox                                    a cluster with virtual GPUs, live\n"
    "  kubectl get nodes,pods -A -o yaml | nos plan -f -\n"
    "                                                 what nos would do on your cluster\n"
    "  nos simulate churn --gpus 100 --model A100-40GB --mix uniform --load 0.95\n"
    "Help on one command: nos COMMAND --help";

// The word that is no command where one was expected, or "".
std::string UnknownCommand(const CLI::App& root) {
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  const std::vector<std::string> rest = at->remaining();
  return rest.empty() ? "" : rest.front();
}

// CLI11 ends some messages with advice of its own on further lines; people get one sentence.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string CommandPath(const CLI::App& root) {
  std::string path = "nos";
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
  return value && *value >= 0 ? "" : "'" + text + "' is not a whole number from 0 to 2^63-1";
}

void AddHoldAfterFlag(CLI::App& command, Duration& target) {
  const auto check = [](const std::string& text) -> std::string {
    constexpr Duration kLongest = std::chrono::hours(24 * 365);
    const Result<Duration> wait = ParseDuration(text);
    if (!wait.ok()) return wait.status().message();
    if (*wait >= Duration::zero() && *wait <= kLongest) return "";
    return "'" + text + "' is not from 0 to 8760h";
  };
  command
      .add_option_function<std::string>(
          "--hold-after", [&target](const std::string& text) { target = *ParseDuration(text); },
          "Keep slots free for a pod that has waited this long; 0: for none")
      ->check(check)
      ->option_text("DURATION [" + FormatAge(target) + "]");
}

void OfferWords(CLI::Option& option, const std::vector<std::string>& words, bool or_file,
                const std::string& text) {
  option.type_name("{" + Join(words, ",") + "}" + (or_file ? "FILE" : ""));
  option.option_text(text);
}

int Fail(const std::string& command, const Status& error) {
  std::cerr << command << ": " << Printable(error.message()) << "\n";
  const bool usage = error.code() == Code::kInvalid || error.code() == Code::kNotFound;
  return usage ? kExitUsage : kExitFailed;
}

int Main(int argc, char** argv) {
  CLI::App root("nos shares the GPUs of a Kubernetes cluster: it cuts them so that pods run.",
                "nos");
  root.require_subcommand(1);
  root.footer(kFooter);
  root.get_formatter()->column_width(38);
  Chosen chosen;
  AddSandboxCommand(root, chosen);
  AddPlanCommand(root, chosen);
  AddSimulateCommand(root, chosen);
  AddGetCommand(root, chosen);
  AddPartitionerCommand(root, chosen);
  AddAgentCommand(root, chosen);
  AddVersionCommand(root, chosen);
  AddCompletionCommand(root, chosen);
  root.set_version_flag("--version", VersionText());
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "help") {  // nos help plan: nos plan --help
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    root.parse(std::move(words));
  } catch (const CLI::Success& help) {
    return root.exit(help);
  } catch (const CLI::RequiredError& error) {
    const std::string word = UnknownCommand(root);
    std::cerr << CommandPath(root) << ": "
              << (word.empty() ? Printable(FirstLine(error.what()))
                               : "unknown command '" + Printable(word) + "'")
              << " (try --help)\n";
    return kExitUsage;
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

}  // namespace nos::cmd
