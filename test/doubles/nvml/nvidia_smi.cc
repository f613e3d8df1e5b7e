// A double of nvidia-smi: resets one GPU of the state file (README.md).
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/fd.h"
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

int Main(int count, char** arguments) {
  const char* path = std::getenv("NOS_NVML_DOUBLE_STATE");  // NOLINT(concurrency-mt-unsafe)
  const bool known = count == 4 && std::string_view(arguments[1]) == "--gpu-reset" &&
                     std::string_view(arguments[2]) == "-i";
  if (path == nullptr || !known) {
    fmt::print("usage: NOS_NVML_DOUBLE_STATE=FILE nvidia-smi --gpu-reset -i GPU-UUID\n");
    return 2;
  }
  const End end = Run(path, arguments[3]);
  fmt::print("{}\n", end.said);
  return end.status;
}

}  // namespace
}  // namespace nos::nvml_double

int main(int count, char** arguments) { return nos::nvml_double::Main(count, arguments); }
