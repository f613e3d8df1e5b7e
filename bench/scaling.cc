// Compares the cost of nodes that scale with demand, at equal waiting time: nos against "scale on
// unschedulable pods" (docs/simulate-scaling.md).
//
//   nos-scaling [TRACE] [SEEDS] [DAYS]
//
// TRACE: openb, openb-memory, bursts, bursts-slices, or all (default). SEEDS: 3. DAYS: 7. The openb
// pod list (Alibaba cluster-trace-gpu-v2023) is read from the directory $NOS_OPENB; if it is not
// found, the openb traces are skipped.
#include <fmt/core.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "study/scaling/study.h"

namespace nos {
namespace {

constexpr const char* kPodList = "openb_pod_list_default.csv";

std::string Machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) {
      return fmt::format("{}, {} cores", Trim(line.substr(line.find(':') + 1)),
                         std::thread::hardware_concurrency());
    }
  }
  return fmt::format("{} cores", std::thread::hardware_concurrency());
}

std::string ReadPodList() {
  const char* folder = std::getenv("NOS_OPENB");  // NOLINT(concurrency-mt-unsafe): one thread
  std::ifstream file(std::string(folder == nullptr ? "test/data/openb" : folder) + "/" + kPodList);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
}

struct Case {
  const char* name;
  bool openb, by_memory;
  double slices;
};

// False if it could not be run.
bool Run(const Case& of, const std::string& pods, int seeds, double days) {
  study::ScalingStudyOptions options;
  if (of.openb) options.trace.openb = {kPodList, pods};
  options.trace.window = {.days = days, .by_memory = of.by_memory};
  options.trace.bursts = {.days = days, .slices = of.slices};
  options.seeds = seeds;
  options.equal_waiting = true;
  const double before = CpuSeconds();
  const Result<study::ScalingStudy> study = study::RunScalingStudy(options);
  if (!study.ok()) {
    fmt::print(stderr, "{}: {}\n", of.name, study.status().message());
    return false;
  }
  const double took = CpuSeconds() - before;
  fmt::print("== {}, {} seeds, {} days: {} runs, {:.1f} s CPU in all\n{}\n", of.name, seeds, days,
             study->runs.size(), took, study::ToText(*study));
  return true;
}

int Main(const std::string& trace, int seeds, double days) {
  constexpr Case kCases[] = {{"openb", true, false, 0},
                             {"openb-memory", true, true, 0},
                             {"bursts", false, false, 0},
                             {"bursts-slices", false, false, 0.5}};
  fmt::print("machine: {}\ncommand: nos-scaling {} {} {}\n\n", Machine(), trace, seeds, days);
  const std::string pods = ReadPodList();
  bool known = false, ok = true;
  for (const Case& of : kCases) {
    if (trace != "all" && trace != of.name) continue;
    known = true;
    if (of.openb && pods.empty()) {
      fmt::print("== {}: left out, there is no {}: set NOS_OPENB to its folder\n\n", of.name,
                 kPodList);
      continue;
    }
    ok = Run(of, pods, seeds, days) && ok;
  }
  if (!known) fmt::print(stderr, "there is no trace '{}'\n", trace);
  return known && ok ? 0 : 2;
}

}  // namespace
}  // namespace nos

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string trace = words.empty() ? "all" : words[0];
  const int seeds = words.size() > 1 ? std::atoi(words[1].c_str()) : 3;
  const double days = words.size() > 2 ? std::atof(words[2].c_str()) : 7;
  return nos::Main(trace, seeds, days);
}
