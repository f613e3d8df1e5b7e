#include "device/cdi_spec.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/file.h"

namespace nos::device {
namespace {

constexpr const char* kLockFile = ".nos.lock";  // runtimes read *.json and *.yaml

Json Mount(const DriverFile& file, const char* access = "ro") {
  return JsonObject{{"hostPath", file.host_path},
                    {"containerPath", file.container_path},
                    {"options", JsonArray{access, "nosuid", "nodev", "rbind", "rprivate"}}};
}

JsonArray Hooks(const DriverFiles& driver) {
  if (driver.hook.empty()) return {};
  const std::string name = driver.hook.substr(driver.hook.rfind('/') + 1);
  JsonArray args{name};
  if (name == "nvidia-ctk") args.push_back("hook");
  args.push_back("update-ldcache");
  args.push_back("--folder");
  args.push_back(Json(driver.library_folder));
  return {JsonObject{{"hookName", "createContainer"}, {"path", driver.hook}, {"args", args}}};
}

// With numbers the runtime does not look for the host's node.
JsonArray DeviceNodes(const std::vector<DeviceNode>& nodes) {
  JsonArray list;
  for (const DeviceNode& node : nodes) {
    JsonObject entry{{"path", node.path}, {"permissions", "rw"}};
    if (node.major > 0) {
      entry["type"] = "c";
      entry["major"] = node.major;
      entry["minor"] = node.minor;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Status Failed(std::string_view what, const std::string& path) {
  return {Code::kUnavailable,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(errno))};
}

}  // namespace

Json ToJson(const CdiSpec& spec) {
  JsonArray devices;
  for (const auto& [name, nodes] : spec.devices) {
    JsonObject edits;
    if (!nodes.empty()) edits["deviceNodes"] = DeviceNodes(nodes);
    JsonArray environment, mounts;
    if (const auto files = spec.files.find(name); files != spec.files.end()) {
      for (const DriverFile& file : files->second) mounts.push_back(Mount(file));
    }
    if (const auto more = spec.edits.find(name); more != spec.edits.end()) {
      for (const DriverFile& folder : more->second.folders) mounts.push_back(Mount(folder, "rw"));
      for (const auto& [key, value] : more->second.environment) {
        environment.push_back(Json(fmt::format("{}={}", key, value)));
      }
    }
    if (!environment.empty()) edits["env"] = std::move(environment);
    if (!mounts.empty()) edits["mounts"] = std::move(mounts);
    devices.push_back(JsonObject{{"name", name}, {"containerEdits", std::move(edits)}});
  }
  // NVIDIA's container runtime adds the GPUs that this variable names. Images may set it to "all".
  JsonArray mounts;
  for (const DriverFile& file : MountsOf(spec.driver)) mounts.push_back(Mount(file));
  JsonObject edits{{"env", JsonArray{"NVIDIA_VISIBLE_DEVICES=void"}}, {"mounts", mounts}};
  if (!spec.driver.device_nodes.empty())
    edits["deviceNodes"] = DeviceNodes(spec.driver.device_nodes);
  if (JsonArray hooks = Hooks(spec.driver); !hooks.empty()) edits["hooks"] = std::move(hooks);
  return JsonObject{{"cdiVersion", "0.5.0"},
                    {"kind", spec.kind},
                    {"devices", std::move(devices)},
                    {"containerEdits", std::move(edits)}};
}

std::string CdiFileName(const std::string& kind) {
  std::string name = kind;
  std::ranges::replace(name, '/', '-');
  return name + ".json";
}

Status WriteCdiSpec(const std::string& folder, const CdiSpec& spec) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return Failed("create", folder);
  // Two agents may run for a moment. The lock ends with the descriptor. Its file is its own,
  // because every process that may read a file or folder may lock it.
  const std::string lock_path = folder + "/" + kLockFile;
  const UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.valid() || flock(lock.get(), LOCK_EX) != 0) return Failed("lock", lock_path);
  const std::string path = folder + "/" + CdiFileName(spec.kind), text = WriteJson(ToJson(spec));
  if (const auto now = ReadFile(path); now.ok() && *now == text) return Status::Ok();
  return ReplaceFile(path, text, 0644);
}

Status RemoveCdiSpec(const std::string& folder, const std::string& kind) {
  const std::string path = folder + "/" + CdiFileName(kind);
  return unlink(path.c_str()) == 0 || errno == ENOENT ? Status::Ok() : Failed("remove", path);
}

}  // namespace nos::device
