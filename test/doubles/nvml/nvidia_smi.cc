// A double of nvidia-smi: resets one GPU of the state file, or prints its GPUs (README.md).
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "state.h"
#include "state_file.h"

namespace nos::nvml_double {
namespace {

struct End {
  int status = 0;
  std::string said;
};

bool HasClients(const Gpu& gpu) {
  const auto works = [](const Instance& instance) {
    return std::ranges::any_of(instance.compute, &ComputeInstance::in_use);
  };
  return gpu.in_use || !gpu.processes.empty() || std::ranges::any_of(gpu.instances, works);
}

End Refused(const Gpu& gpu) {
  return {255, fmt::format(
                   "The following GPUs could not be reset:\n  GPU {}: In use by another client\n\n"
                   "1 device is currently being used by one or more other processes (e.g., "
                   "Fabric Manager, CUDA application, graphics application such as an X server, "
                   "or a monitoring application such as another instance of nvidia-smi).",
                   gpu.uuid)};
}

End Reset(State& state, const std::string& uuid, bool sessions) {
  const auto gpu = std::ranges::find(state.gpus, uuid, &Gpu::uuid);
  if (gpu == state.gpus.end()) return {6, fmt::format("No devices were found: {}", uuid)};
  if (!state.root) return {4, "Unable to reset this GPU: Insufficient Permissions"};
  if (gpu->lost) return {15, "GPU is lost. Reboot the system to recover this GPU"};
  if (!gpu->no_reset.empty()) return {3, gpu->no_reset};
  if (sessions || HasClients(*gpu)) return Refused(*gpu);
  gpu->mig = gpu->mig_pending;
  gpu->instances.clear();
  gpu->compute_mode = 0;
  return {0, fmt::format("GPU {} was successfully reset.\nAll done.", uuid)};
}

End Run(const std::string& path, const std::string& uuid) {
  // Blocks other processes that open the GPUs meanwhile.
  const UniqueFd sessions(open(SessionsPath(path).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  const bool alone = sessions.valid() && flock(sessions.get(), LOCK_EX | LOCK_NB) == 0;
  const StateFile file(path);
  const Result<Json> json = file.Read();
  if (!json.ok()) return {9, "NVIDIA-SMI has failed: " + json.status().message()};
  Result<State> state = ReadState(*json);
  if (!state.ok()) return {255, state.status().message()};
  End end = Reset(*state, uuid, !alone);
  if (const Status written = file.Write(WriteState(*state)); !written.ok()) {
    return {255, written.message()};
  }
  return end;
}

// One value of nvidia-smi --help-query-gpu; "[N/A]" for readings that the file does not have.
std::string ValueOf(const State& state, const Gpu& gpu, std::string_view field) {
  const auto reading = [&](const std::string& name, double scale) -> std::string {
    const auto found = gpu.readings.find(name);
    if (found == gpu.readings.end()) return "[N/A]";
    return fmt::format("{:.2f}", static_cast<double>(found->second) / scale);
  };
  if (field == "uuid") return gpu.uuid;
  if (field == "name") return gpu.product;
  if (field == "driver_version") return state.driver;
  if (field == "memory.total") return fmt::format("{}", gpu.memory_mib);
  if (field == "memory.used") return reading("memoryUsedMiB", 1);
  if (field == "power.draw") return reading("powerMilliwatts", 1000);
  if (field == "enforced.power.limit") return reading("powerLimitMilliwatts", 1000);
  if (field == "temperature.gpu") return reading("temperature", 1);
  if (field == "mig.mode.current" && gpu.model != nullptr) return gpu.mig ? "Enabled" : "Disabled";
  return "[N/A]";
}

End Query(const std::string& path, std::string_view fields) {
  const StateFile file(path);
  const Result<Json> json = file.Read();
  if (!json.ok()) return {9, "NVIDIA-SMI has failed: " + json.status().message()};
  const Result<State> state = ReadState(*json);
  if (!state.ok()) return {255, state.status().message()};
  std::string lines;
  for (const Gpu& gpu : state->gpus) {
    if (gpu.lost) continue;
    std::vector<std::string> values;
    for (const std::string_view field : Split(fields, ',')) {
      values.push_back(ValueOf(*state, gpu, field));
    }
    lines += (lines.empty() ? "" : "\n") + Join(values, ", ");
  }
  return {0, lines};
}

int Main(int count, char** arguments) {
  constexpr std::string_view kQuery = "--query-gpu=";
  const char* path = std::getenv("NOS_NVML_DOUBLE_STATE");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view first = count > 1 ? arguments[1] : "";
  const bool resets =
      count == 4 && first == "--gpu-reset" && std::string_view(arguments[2]) == "-i";
  const bool prints = count == 3 && first.starts_with(kQuery) &&
                      std::string_view(arguments[2]) == "--format=csv,noheader,nounits";
  if (path == nullptr || !(resets || prints)) {
    fmt::print(
        "usage: NOS_NVML_DOUBLE_STATE=FILE nvidia-smi --gpu-reset -i GPU-UUID | "
        "--query-gpu=FIELDS --format=csv,noheader,nounits\n");
    return 2;
  }
  const End end = resets ? Run(path, arguments[3]) : Query(path, first.substr(kQuery.size()));
  fmt::print("{}\n", end.said);
  return end.status;
}

}  // namespace
}  // namespace nos::nvml_double

int main(int count, char** arguments) { return nos::nvml_double::Main(count, arguments); }
