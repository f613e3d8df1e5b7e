#include "device/driver_files.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace nos::device {
namespace {

namespace fs = std::filesystem;

// Folders of the host in which drivers are installed that are not part of its system: by the GPU
// Operator, GKE, AKS. Sources: as in docs/platforms.md.
constexpr const char* kDriverFolders[] = {"run/nvidia/driver", "home/kubernetes/bin/nvidia",
                                          "usr/local/nvidia"};
// Folders of libraries: Debian, Ubuntu; Fedora, Red Hat, SUSE; GKE's driver installer.
constexpr const char* kLibraryFolders[] = {"usr/lib/x86_64-linux-gnu",
                                           "usr/lib/aarch64-linux-gnu",
                                           "usr/lib/x86_64-linux-gnu/nvidia/current",
                                           "usr/lib/aarch64-linux-gnu/nvidia/current",
                                           "usr/lib64",
                                           "usr/lib",
                                           "lib64"};
constexpr const char* kProgramFolders[] = {"usr/bin", "bin"};
constexpr const char* kPrograms[] = {"nvidia-smi", "nvidia-debugdump", "nvidia-persistenced",
                                     "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"};
constexpr const char* kSockets[] = {"run/nvidia-persistenced/socket",
                                    "run/nvidia-fabricmanager/socket"};
constexpr const char* kHooks[] = {"usr/bin/nvidia-cdi-hook",
                                  "usr/local/nvidia/toolkit/nvidia-cdi-hook", "usr/bin/nvidia-ctk",
                                  "usr/local/nvidia/toolkit/nvidia-ctk"};
// Folders in which the loaders of common distributions look without a cache.
constexpr const char* kLoaderFolders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64"};
constexpr size_t kMaxFiles = 100'000, kMaxProcFile = size_t{64} * 1024;

std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end;
       !error && it != end && names.size() < kMaxFiles; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The file that this path names below the root, after links as the host follows them, for example
// through /etc/alternatives (Debian). "": there is none, or a link leaves the root.
std::string FollowLinks(const fs::path& root, fs::path path) {
  constexpr int kMaxLinks = 40;  // as the kernel has it (path_resolution(7))
  std::error_code error;
  for (int links = 0; links < kMaxLinks; ++links) {
    if (!fs::is_symlink(root / path, error)) return Exists(root / path) ? path.string() : "";
    const fs::path target = fs::read_symlink(root / path, error);
    const bool absolute = target.is_absolute();
    path = absolute ? target.relative_path() : (path.parent_path() / target).lexically_normal();
    if (path.empty() || *path.begin() == "..") return "";
  }
  return "";
}

// The path by which this process sees the host's "/dev/nvidia0".
fs::path OnThisSide(const std::string& path, const HostFolders& host) {
  return fs::path(host.dev) / fs::path(path).lexically_relative("/dev");
}

// The numbers of the node on the host; unchanged if there is none.
void ReadNumbers(DeviceNode& node, const HostFolders& host) {
  struct stat found{};
  if (stat(OnThisSide(node.path, host).c_str(), &found) != 0 || !S_ISCHR(found.st_mode)) return;
  node.major = major(found.st_rdev);
  node.minor = minor(found.st_rdev);
}

bool IsVersion(std::string_view text) {
  return text.find('.') != std::string_view::npos &&
         std::ranges::all_of(text, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// The version in "libcuda.so.550.54.15"; "" for other names, such as "libcuda.so.1".
std::string VersionIn(std::string_view name) {
  constexpr std::string_view kPrefix = "libcuda.so.";
  if (!name.starts_with(kPrefix)) return "";
  name.remove_prefix(kPrefix.size());
  return IsVersion(name) ? std::string(name) : "";
}

// The number in a line "NAME: 12" of a file below /proc/driver/nvidia.
std::optional<int64_t> NumberIn(const std::string& text, std::string_view name) {
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    return ParseInt(Trim(line.substr(colon + 1)));
  }
  return std::nullopt;
}

// A GPU in the list of the kernel module.
struct ListedGpu {
  std::string bus;
  int64_t minor = 0;
};

Result<ListedGpu> FindGpu(const std::string& uuid, const HostFolders& host) {
  const fs::path gpus = fs::path(host.proc) / "driver/nvidia/gpus";
  for (const std::string& bus : NamesIn(gpus)) {
    const auto text = ReadFile((gpus / bus / "information").string(), kMaxProcFile);
    if (!text.ok() || text->find(uuid) == std::string::npos) continue;
    const auto minor = NumberIn(*text, "Device Minor");
    if (minor && *minor >= 0) return ListedGpu{bus, *minor};
  }
  return NotFound(fmt::format("{} does not list {}", gpus.string(), uuid));
}

// The major number that the kernel has given to one of these drivers (proc(5), "/proc/devices"); 0:
// none.
uint32_t MajorOf(std::initializer_list<std::string_view> drivers, const HostFolders& host) {
  const auto text = ReadFile((fs::path(host.proc) / "devices").string(), kMaxProcFile);
  if (!text.ok()) return 0;
  for (const std::string_view line : Split(*text, '\n')) {
    if (line.starts_with("Block")) break;
    const std::string_view entry = Trim(line);
    const size_t space = entry.find(' ');
    if (space == std::string_view::npos) continue;
    const auto number = ParseInt(entry.substr(0, space));
    if (number && *number > 0 && std::ranges::count(drivers, Trim(entry.substr(space))) > 0) {
      return static_cast<uint32_t>(*number);
    }
  }
  return 0;
}

// The kernel's number is right even if a node on the host is left over from an earlier one.
Result<DeviceNode> WithMajor(DeviceNode node, std::initializer_list<std::string_view> drivers,
                             const HostFolders& host) {
  node.major = MajorOf(drivers, host);
  if (node.major == 0) ReadNumbers(node, host);
  if (node.major > 0) return node;
  return NotFound(fmt::format("{} is not on the host, and {}/devices does not list {}", node.path,
                              host.proc, *drivers.begin()));
}

// A device node that containers need whatever GPU they have: its drivers in /proc/devices, and its
// minor number. Source: nvidia-modprobe, modprobe-utils/nvidia-modprobe-utils.h.
struct CommonNode {
  const char* name;
  std::initializer_list<std::string_view> drivers;
  uint32_t minor;
  bool needed;  // CUDA does not start without it
};
const CommonNode kCommonNodes[] = {
    {"nvidiactl", {"nvidiactl", "nvidia", "nvidia-frontend"}, 255, true},
    {"nvidia-uvm", {"nvidia-uvm"}, 0, true},
    {"nvidia-uvm-tools", {"nvidia-uvm"}, 1, false},
    {"nvidia-modeset", {"nvidia-modeset"}, 254, false}};

// A driver in a container makes its nodes there, not on the host.
void FindCommonNodes(const HostFolders& host, DriverFiles& files) {
  for (const CommonNode& common : kCommonNodes) {
    DeviceNode node{fmt::format("/dev/{}", common.name), 0, common.minor};
    if (auto numbered = WithMajor(node, common.drivers, host); numbered.ok()) {
      files.device_nodes.push_back(*std::move(numbered));
    } else if (Exists(OnThisSide(node.path, host))) {
      files.device_nodes.push_back({std::move(node.path)});
    } else if (common.needed && files.missing_node.empty()) {
      files.missing_node = numbered.status().message();
    }
  }
}

// "580.95.05", the version of the loaded kernel module, in "NVRM version: NVIDIA UNIX x86_64 Kernel
// Module  580.95.05  Tue Sep ..."; "": not known.
std::string LoadedVersion(const HostFolders& host) {
  const auto text =
      ReadFile((fs::path(host.proc) / "driver/nvidia/version").string(), kMaxProcFile);
  if (!text.ok()) return "";
  for (const std::string_view word : Split(text->substr(0, text->find('\n')), ' ')) {
    if (IsVersion(word)) return std::string(word);
  }
  return "";
}

// Finds the toolkit's program for hooks. Returns its path on the host; "" if none is installed.
std::string FindHook(const HostFolders& host) {
  const auto hook = std::ranges::find_if(
      kHooks, [&](const char* path) { return Exists(fs::path(host.driver) / path); });
  return hook == std::end(kHooks) ? "" : (fs::path(host.driver_host) / *hook).string();
}

class Finder {
 public:
  // `loaded`: the version of the kernel module; "": not known, so that of any library is taken.
  Finder(const HostFolders& host, std::string_view loaded)
      : host_(host), loaded_(loaded), root_(host.driver) {}

  Result<DriverFiles> Find() {
    NOS_RETURN_IF_ERROR(FindLibraries());
    for (const char* program : kPrograms) AddProgram(program);
    for (const std::string& name : NamesIn(root_ / "lib/firmware/nvidia" / files_.version)) {
      Add("lib/firmware/nvidia/" + files_.version + "/" + name);
    }
    for (const char* socket : kSockets) {
      if (Exists(root_ / socket)) Add(socket);
    }
    FindCommonNodes(host_, files_);
    files_.hook = FindHook(host_);
    std::ranges::sort(files_.mounts);
    return std::move(files_);
  }

 private:
  Status FindLibraries() {
    for (const char* folder : kLibraryFolders) {
      const std::vector<std::string> names = NamesIn(root_ / folder);
      for (const std::string& name : names) Consider(VersionIn(name));
      if (files_.version.empty()) continue;
      files_.library_folder = "/" + std::string(folder);
      for (const std::string& name : names) AddLibrary(folder, name);
      return Status::Ok();
    }
    if (other_.empty()) {
      return NotFound(fmt::format("no libcuda.so of an NVIDIA driver below {}", host_.driver));
    }
    return NotFound(fmt::format(
        "the loaded kernel module is of driver {}, and the libraries below {} are of {}: was the "
        "driver replaced without a reboot?",
        loaded_, host_.driver, other_));
  }
  // Libraries of another version than the kernel module do not work, and may be left over.
  void Consider(const std::string& version) {
    if (version.empty() || !files_.version.empty()) return;
    (loaded_.empty() || version == loaded_ ? files_.version : other_) = version;
  }

  // A library of this driver version, or a link to one ("libcuda.so.1").
  void AddLibrary(const std::string& folder, const std::string& name) {
    std::error_code error;
    const fs::path path = root_ / folder / name;
    std::string file = name;
    if (fs::is_symlink(path, error)) file = fs::read_symlink(path, error).filename().string();
    // A link to a link: "libcuda.so" -> "libcuda.so.1" -> "libcuda.so.550.54.15".
    const fs::path next = root_ / folder / file;
    if (file != name && fs::is_symlink(next, error))
      file = fs::read_symlink(next, error).filename().string();
    if (!file.ends_with(".so." + files_.version) || !Exists(root_ / folder / file)) return;
    const std::string target = OnHost(folder + "/" + file);
    files_.mounts.push_back({target, "/" + folder + "/" + name});
  }
  void AddProgram(const std::string& name) {
    for (const char* folder : kProgramFolders) {
      const std::string file = FollowLinks(root_, fmt::format("{}/{}", folder, name));
      if (file.empty()) continue;
      files_.mounts.push_back({OnHost(file), "/usr/bin/" + name});
      return;
    }
  }
  void Add(const std::string& path) { files_.mounts.push_back({OnHost(path), "/" + path}); }
  std::string OnHost(const std::string& path) const {
    return (fs::path(host_.driver_host) / path).string();
  }

  const HostFolders& host_;
  const std::string_view loaded_;
  const fs::path root_;
  std::string other_;  // a version that was found and is not the loaded one
  DriverFiles files_;
};

// The device node of a capability: a file such as .../mig/gi3/access.
Result<DeviceNode> NodeOfCapability(const fs::path& access, const HostFolders& host) {
  NOS_ASSIGN(const std::string text, ReadFile(access.string(), kMaxProcFile));
  const auto minor = NumberIn(text, "DeviceFileMinor");
  if (!minor || *minor < 0) return NotFound(access.string() + " has no DeviceFileMinor");
  return WithMajor({fmt::format("/dev/nvidia-caps/nvidia-cap{}", *minor), 0,
                    static_cast<uint32_t>(*minor), 0444},
                   {"nvidia-caps"}, host);
}

}  // namespace

Result<DriverFiles> FindDriverFiles(const HostFolders& host) {
  const std::string loaded = LoadedVersion(host);
  Result<DriverFiles> found = Finder(host, loaded).Find();
  if (found.ok() || host.driver_host != "/") return found;
  for (const char* folder : kDriverFolders) {
    HostFolders below = host;
    below.driver = fs::path(host.driver) / folder;
    below.driver_host = fs::path(host.driver_host) / folder;
    if (auto driver = Finder(below, loaded).Find(); driver.ok()) {
      // The container toolkit is installed apart from the driver.
      if (driver->hook.empty()) driver->hook = FindHook(host);
      return driver;
    }
  }
  return found;
}

std::string PathOf(std::string_view name, const DriverFiles& driver, const HostFolders& host) {
  for (const DriverFile& file : driver.mounts) {
    if (fs::path(file.container_path).filename() != name) continue;
    return (fs::path(host.driver) / fs::path(file.host_path).lexically_relative(host.driver_host))
        .string();
  }
  return "";
}

std::vector<DriverFile> MountsOf(const DriverFiles& driver) {
  std::vector<DriverFile> mounts;
  std::set<std::string> taken;
  const auto add = [&](const std::string& from, const std::string& to) {
    if (taken.insert(to).second) mounts.push_back({from, to});
  };
  for (const DriverFile& file : driver.mounts) add(file.host_path, file.container_path);
  if (!driver.hook.empty()) return mounts;
  for (const DriverFile& file : driver.mounts) {
    const std::string name = fs::path(file.container_path).filename().string();
    if (name.find(".so") == std::string::npos) continue;
    for (const char* folder : kLoaderFolders) {
      add(file.host_path, fmt::format("{}/{}", folder, name));
    }
  }
  return mounts;
}

Result<std::vector<DeviceNode>> DeviceNodesOf(const std::string& gpu_uuid,
                                              std::optional<uint32_t> gpu_instance,
                                              const HostFolders& host) {
  NOS_ASSIGN(const ListedGpu gpu, FindGpu(gpu_uuid, host));
  const int64_t minor = gpu.minor;
  NOS_ASSIGN(DeviceNode of_gpu,
             WithMajor({fmt::format("/dev/nvidia{}", minor), 0, static_cast<uint32_t>(minor), 0666},
                       {"nvidia", "nvidia-frontend"}, host));
  std::vector<DeviceNode> nodes{std::move(of_gpu)};
  if (!gpu_instance) return nodes;
  const fs::path folder =
      fs::path(host.proc) /
      fmt::format("driver/nvidia/capabilities/gpu{}/mig/gi{}", minor, *gpu_instance);
  NOS_ASSIGN(DeviceNode of_gpu_instance, NodeOfCapability(folder / "access", host));
  nodes.push_back(std::move(of_gpu_instance));
  for (const std::string& name : NamesIn(folder)) {
    if (!name.starts_with("ci")) continue;
    NOS_ASSIGN(DeviceNode of_compute_instance, NodeOfCapability(folder / name / "access", host));
    nodes.push_back(std::move(of_compute_instance));
    return nodes;
  }
  return NotFound(folder.string() + " has no compute instance");
}

std::string PciBusIdOf(const std::string& gpu_uuid, const HostFolders& host) {
  const auto gpu = FindGpu(gpu_uuid, host);
  return gpu.ok() ? gpu->bus : "";
}

std::optional<int64_t> MinorOf(const std::string& gpu_uuid, const HostFolders& host) {
  const auto gpu = FindGpu(gpu_uuid, host);
  return gpu.ok() ? std::optional(gpu->minor) : std::nullopt;
}

Status MakeOnHost(const DeviceNode& node, const HostFolders& host) {
  const fs::path path = OnThisSide(node.path, host);
  const auto failed = [&] {
    return Status(Code::kUnavailable, fmt::format("cannot create device node {}: {}", path.string(),
                                                  std::generic_category().message(errno)));
  };
  const dev_t number = makedev(node.major, node.minor);
  struct stat found{};
  if (stat(path.c_str(), &found) == 0) {
    if (!S_ISCHR(found.st_mode) || found.st_rdev == number) return Status::Ok();
    // Left over from before the driver was loaded again.
    if (unlink(path.c_str()) != 0) return failed();
  }
  const fs::path folder = path.parent_path();
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return failed();
  if (mknod(path.c_str(), S_IFCHR | node.host_mode, number) != 0 && errno != EEXIST) {
    return failed();
  }
  // The mask of this process does not count.
  return chmod(path.c_str(), node.host_mode) == 0 ? Status::Ok() : failed();
}

}  // namespace nos::device
