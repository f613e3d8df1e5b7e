#include "agent/device_plugin/host_devices.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "device/mig_parts.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxSpec = size_t{64} << 20;

// The GPU or instance that a device makes visible: shares and time slices have ids that begin with
// the UUID of theirs ("GPU-...::10::0").
std::string VisibleOf(const std::string& device_id) {
  return device_id.substr(0, device_id.find("::"));
}

}  // namespace

HostDevices::HostDevices(device::Backend& backend, device::HostFolders host, std::string cdi_folder)
    : backend_(backend), host_(std::move(host)), cdi_folder_(std::move(cdi_folder)) {
  spec_.kind = kCdiKind;
}

Status HostDevices::Update(std::vector<kubelet::OfferedDevice>& offer, bool keep) {
  problem_.reset();
  NOS_RETURN_IF_ERROR(Prepare(offer, keep));
  if (lacks_.empty()) return Status::Ok();
  const auto& [uuid, why] = *lacks_.begin();
  problem_ = {"DeviceNodesNotFound", fmt::format("{}: {}", uuid, why)};
  return Status::Ok();
}

Status HostDevices::Failed(std::string reason, Status error) {
  problem_ = {std::move(reason), error.message()};
  return error;
}

Status HostDevices::Prepare(std::vector<kubelet::OfferedDevice>& offer, bool keep) {
  auto found = device::FindDriverFiles(host_);
  if (!found.ok()) return Failed("DriverFilesNotFound", found.status());
  device::DriverFiles driver = std::move(found).value();
  if (!driver.missing_node.empty()) {
    return Failed("DriverNotLoaded",
                  NotFound(driver.missing_node + ": load the kernel module on the node"));
  }
  if (cdi_folder_.empty()) {
    for (const device::DeviceNode& node : driver.device_nodes) {
      if (node.major == 0) continue;  // it is on the host, and no device node
      if (Status made = device::MakeOnHost(node, host_); !made.ok()) {
        return Failed("DeviceNodesNotFound", std::move(made));
      }
    }
  }
  auto read = ReadNodes();
  if (!read.ok()) return Failed("GpusNotReadable", read.status());
  Nodes nodes = std::move(read).value();
  for (kubelet::OfferedDevice& offered : offer) {
    if (!nodes.contains(VisibleOf(offered.device_id))) offered.healthy = false;
  }
  device::CdiSpec next{kCdiKind, std::move(driver), std::move(nodes)};
  if (keep) {
    const std::lock_guard lock(mutex_);
    for (const auto& [uuid, of_device] : spec_.devices) next.devices.try_emplace(uuid, of_device);
  }
  std::string text = cdi_folder_.empty() ? "" : WriteJson(ToJson(next));
  if (!cdi_folder_.empty() && (text != written_ || IsLost())) {
    written_.clear();  // after an error the folder may have the old one, the new one or none
    Status written = device::WriteCdiSpec(cdi_folder_, next);
    if (!written.ok()) return Failed("SpecificationNotWritten", std::move(written));
    written_ = std::move(text);
  }
  const std::lock_guard lock(mutex_);
  spec_ = std::move(next);
  return Status::Ok();
}

bool HostDevices::IsLost() const {
  if (written_.empty()) return false;
  const auto found = ReadFile(cdi_folder_ + "/" + device::CdiFileName(kCdiKind), kMaxSpec);
  return !found.ok() || *found != written_;
}

bool HostDevices::IsOutdated() const {
  const auto driver = device::FindDriverFiles(host_);
  const std::lock_guard lock(mutex_);
  return !driver.ok() || *driver != spec_.driver;
}

Result<HostDevices::Nodes> HostDevices::ReadNodes() {
  Nodes nodes;
  std::map<std::string, std::string> lacks;
  const auto add = [&](const std::string& uuid, const std::string& gpu,
                       std::optional<uint32_t> instance) {
    auto found = NodesOf(gpu, instance);
    if (found.ok()) {
      nodes[uuid] = std::move(found).value();
      return;
    }
    const std::string& why = lacks[uuid] = found.status().message();
    const auto known = lacks_.find(uuid);
    if (known != lacks_.end() && known->second == why) return;
    Log(LogLevel::kWarn, "offering device as unhealthy: it has no device nodes",
        {{"device", uuid}, {"error", why}});
  };
  NOS_ASSIGN(const std::vector<device::GpuInfo> infos, backend_.ListGpus());
  for (const device::GpuInfo& info : infos) {
    if (info.uuid.empty()) continue;
    add(info.uuid, info.uuid, {});
    if (!info.mig_enabled || !info.problem.empty()) continue;
    NOS_ASSIGN(const auto instances, backend_.ListInstances(info.index));
    for (const device::GpuInstance& instance : instances) {
      if (!instance.complete || !instance.uuid.starts_with("MIG-") || !instance.part_of.empty())
        continue;
      add(instance.uuid, info.uuid, device::DriverIdOf(instance.id));
    }
  }
  lacks_ = std::move(lacks);
  return nodes;
}

Result<std::vector<device::DeviceNode>> HostDevices::NodesOf(
    const std::string& gpu, std::optional<uint32_t> instance) const {
  NOS_ASSIGN(std::vector<device::DeviceNode> nodes, device::DeviceNodesOf(gpu, instance, host_));
  if (!cdi_folder_.empty()) return nodes;
  for (const device::DeviceNode& node : nodes) {
    NOS_RETURN_IF_ERROR(device::MakeOnHost(node, host_));
  }
  return nodes;
}

Result<kubelet::ContainerGrant> HostDevices::FilesOf(
    const std::vector<std::string>& visible) const {
  const std::lock_guard lock(mutex_);
  kubelet::ContainerGrant grant;
  // NVIDIA's container runtime adds the GPUs that this variable names. Images may set it to "all".
  grant.environment["NVIDIA_VISIBLE_DEVICES"] = "void";
  std::set<std::string> nodes;
  for (const device::DeviceNode& node : spec_.driver.device_nodes) nodes.insert(node.path);
  for (const std::string& uuid : visible) {
    const auto found = spec_.devices.find(uuid);
    if (found == spec_.devices.end()) {
      return Status(Code::kUnavailable,
                    fmt::format("the agent does not know the device nodes of {}", uuid));
    }
    for (const device::DeviceNode& node : found->second) nodes.insert(node.path);
  }
  grant.device_nodes.assign(nodes.begin(), nodes.end());
  device::DriverFiles driver = spec_.driver;
  driver.hook.clear();  // kubelets run none
  for (const device::DriverFile& mount : device::MountsOf(driver)) {
    grant.mounts.push_back({mount.host_path, mount.container_path, true});
  }
  return grant;
}

}  // namespace nos::agent
