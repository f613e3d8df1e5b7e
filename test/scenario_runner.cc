// nos-scenario FILE|FOLDER...: runs scenarios (test/scenarios/README.md) and prints the number of
// passed and failed ones.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "sim/run_scenario.h"

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUsage =
    "usage: nos-scenario [-v] FILE|FOLDER...\n"
    "\n"
    "Runs scenarios (*.scenario; a folder: all below it) in a virtual cluster and prints how many\n"
    "passed. test/scenarios/README.md describes the format.\n"
    "\n"
    "  -v, --verbose   of scenarios that fail, print what happened\n"
    "  -h, --help      print this\n"
    "\n"
    "Exit status: 0 all passed, 1 some failed, 2 the command line is wrong.\n"
    "\n"
    "Examples:\n"
    "  nos-scenario test/scenarios\n"
    "  nos-scenario -v test/scenarios/spans-gpus.scenario\n";

struct CommandLine {
  bool verbose = false, help = false;
  std::vector<std::string> files;
};

// Scenario files at the path, sorted; empty if there is none.
std::vector<std::string> Find(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return fs::exists(path, error) ? std::vector{path} : std::vector<std::string>();
  std::vector<std::string> files;
  for (auto entry = fs::recursive_directory_iterator(path, error);
       entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".scenario") files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool Passes(const std::string& file, bool verbose) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto scenario = nos::sim::ParseScenario(text, file);
  if (!scenario.ok()) {
    fmt::print("{}\n", scenario.status().message());
    return false;
  }
  const nos::sim::ScenarioReport report = nos::sim::RunScenario(*scenario);
  for (const auto& failure : report.failures) {
    fmt::print("{}", nos::sim::FormatFailure(report, failure));
  }
  if (!report.ok() && verbose) {
    for (const std::string& event : report.events) fmt::print("    {}\n", event);
  }
  return report.ok();
}

nos::Result<CommandLine> ReadCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  for (const std::string& argument : arguments) {
    if (argument == "-v" || argument == "--verbose") {
      line.verbose = true;
    } else if (argument == "-h" || argument == "--help") {
      line.help = true;
    } else if (argument.starts_with('-')) {
      return nos::Invalid("unknown flag '" + argument + "'");
    } else {
      const std::vector<std::string> found = Find(argument);
      if (found.empty()) return nos::Invalid("no scenario at '" + argument + "'");
      line.files.insert(line.files.end(), found.begin(), found.end());
    }
  }
  if (line.files.empty() && !line.help) return nos::Invalid("name a scenario file or a folder");
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  nos::SetLogLevel(nos::LogLevel::kError);
  const auto line = ReadCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!line.ok()) {
    fmt::print(stderr, "nos-scenario: {} (try --help)\n", line.status().message());
    return 2;
  }
  if (line->help) {
    fmt::print("{}", kUsage);
    return 0;
  }
  int passed = 0, failed = 0;
  for (const std::string& file : line->files) ++(Passes(file, line->verbose) ? passed : failed);
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
