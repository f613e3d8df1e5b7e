#include "cmd/nodecheck/machine.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cmd/nodecheck/smi.h"
#include "device/nvml_events.h"

namespace nos::cmd {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kBetween{500};  // GPM requires 100 ms (nvml.h)
constexpr auto kSmiWithin = std::chrono::seconds(30);

// Tests whether files can be created in the folder, or in the nearest parent that exists.
FolderState LookAtFolder(const std::string& path, bool may_be_made) {
  FolderState state{path};
  std::error_code failed;
  fs::path nearest = path;
  while (!fs::exists(nearest, failed) && nearest.has_relative_path()) {
    nearest = nearest.parent_path();
  }
  const bool exists = nearest == fs::path(path);
  if (!exists && !may_be_made) {
    state.usable = NotFound(path + " does not exist");
  } else if (!fs::is_directory(nearest, failed)) {
    state.usable = Invalid(nearest.string() + " is no folder");
  } else if (access(nearest.c_str(), W_OK | X_OK) != 0) {
    const std::error_code why(errno, std::generic_category());
    state.usable = {Code::kPermission, fmt::format("{}: {}", nearest.string(), why.message())};
  } else if (const auto space = fs::space(nearest, failed); !failed && space.available == 0) {
    state.usable = {Code::kExhausted, nearest.string() + ": no space left"};
  } else if (!exists) {
    state.usable = NotFound(path + " does not exist; the agent creates it");
  }
  state.has_socket = fs::is_socket(fs::path(path) / "kubelet.sock", failed);
  return state;
}

void ReadSmi(const MachineOptions& options, Machine& machine) {
  const std::string program = FindProgram(options.smi);
  if (program.empty()) {
    machine.smi = NotFound("there is no nvidia-smi here");
    return;
  }
  const auto ran = RunProgram({SmiQuery(program), OwnEnvironment()}, {.within = kSmiWithin});
  if (!ran.ok()) {
    machine.smi = ran.status();
  } else if (ran->how != "exit status 0") {
    machine.smi = {Code::kUnavailable,
                   fmt::format("{}: {}: {}", program, ran->how, Shortened(ran->output, 200))};
  } else {
    machine.smi_gpus = ReadSmiTable(ran->output);
  }
}

void ReadFiles(const MachineOptions& options, Machine& machine) {
  machine.files = device::FindDriverFiles(options.host);
  std::error_code failed;
  machine.has_capabilities = fs::exists(options.host.proc + "/driver/nvidia/capabilities", failed);
  machine.mps_program = FindProgram(options.mps);
  machine.cdi = LookAtFolder(options.cdi_folder, true);
  machine.device_plugins = LookAtFolder(options.kubelet_folder + "/device-plugins", false);
  machine.pod_resources = LookAtFolder(options.kubelet_folder + "/pod-resources", false);
}

Status TryEvents(const device::NvmlLibrary& library) {
  device::GpuHealth health;
  device::NvmlEvents events(library, health);
  return events.Start();
}

bool Answers(const std::string& socket_path) {
  sockaddr_un address{};
  if (socket_path.size() >= sizeof(address.sun_path)) return false;
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, socket_path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool answers =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return answers;
}

// An agent serves its device plugins beside the kubelet's socket, and is the first process of its
// container.
std::string FindAgent(const MachineOptions& options) {
  std::error_code failed;
  const fs::path folder = fs::path(options.kubelet_folder) / "device-plugins";
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("nos-") && Answers(it->path().string())) return it->path().string();
  }
  const auto first = ReadFile(options.host.proc + "/1/cmdline", 4096);
  if (!first.ok()) return "";
  const auto words = Split(*first, '\0');
  const bool agent =
      words.size() > 1 && fs::path(words[0]).filename() == "nos" && words[1] == "agent";
  return agent ? "process 1" : "";
}

}  // namespace

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  for (const std::string_view folder : Split(path == nullptr ? "" : path, ':')) {
    if (folder.empty()) continue;
    std::string file = fmt::format("{}/{}", folder, name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

Machine ReadMachine(device::NvmlBackend& backend, const gpu::Catalogue& catalogue,
                    const MachineOptions& options) {
  Machine machine;
  const auto described = device::Describe(backend, catalogue);
  machine.gpus_status = described.status();
  ReadFiles(options, machine);
  machine.agent = FindAgent(options);
  if (!described.ok()) return machine;
  machine.driver = described->driver;
  machine.cuda = backend.CudaVersion();
  machine.library = described->library;
  machine.limits = described->limits;
  for (const device::GpuDescription& gpu : described->gpus) {
    machine.gpus.push_back({gpu, backend.MeasureGpu(gpu.info.index)});
  }
  std::this_thread::sleep_for(kBetween);
  for (GpuFacts& gpu : machine.gpus) {
    const device::GpuInfo& info = gpu.described.info;
    gpu.readings = backend.MeasureGpu(info.index);
    gpu.nodes = device::DeviceNodesOf(info.uuid, std::nullopt, options.host).status();
  }
  ReadSmi(options, machine);
  machine.events = TryEvents(backend.library());
  return machine;
}

}  // namespace nos::cmd
