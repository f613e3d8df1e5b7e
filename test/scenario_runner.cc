// nos-scenario FILE|FOLDER...: runs scenarios (test/scenarios/README.md) and prints how many
// passed.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/log.h"
#include "sim/scenario/run.h"

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUsage =
    "usage: nos-scenario [-v] FILE|FOLDER...\n"
    "Runs scenarios (*.scenario) in a virtual cluster. With -v, prints what happened in those "
    "that\n"
    "fail. Exit status: 0 all passed, 1 some failed, 2 the command line is wrong.\n";

// Scenario files at the path, sorted; empty when there is none.
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

}  // namespace

int main(int argc, char** argv) {
  nos::SetLogLevel(nos::LogLevel::kError);
  bool verbose = false;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "-v") {
      verbose = true;
      continue;
    }
    const std::vector<std::string> found = Find(argument);
    if (found.empty()) {
      fmt::print(stderr, "nos-scenario: no scenario at '{}'\n{}", argument, kUsage);
      return 2;
    }
    files.insert(files.end(), found.begin(), found.end());
  }
  if (files.empty()) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  int passed = 0, failed = 0;
  for (const std::string& file : files) ++(Passes(file, verbose) ? passed : failed);
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
