#include "agent/device_plugin/host_devices.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "base/log.h"
#include "device/mig_parts.h"

namespace nos::agent {
namespace {

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
  NOS_ASSIGN(device::DriverFiles driver, device::FindDriverFiles(host_));
  NOS_ASSIGN(Nodes nodes, ReadNodes());
  for (kubelet::OfferedDevice& offered : offer) {
    if (!nodes.contains(VisibleOf(offered.device_id))) offered.healthy = false;
  }
  device::CdiSpec next{kCdiKind, std::move(driver), std::move(nodes)};
  if (keep) {
    const std::lock_guard lock(mutex_);
    for (const auto& [uuid, of_device] : spec_.devices) next.devices.try_emplace(uuid, of_device);
  }
  if (!cdi_folder_.empty()) {
    const std::lock_guard lock(mutex_);
    const bool same =
        WriteJson(ToJson(next)) == WriteJson(ToJson(spec_)) && !spec_.driver.version.empty();
    if (!same) NOS_RETURN_IF_ERROR(device::WriteCdiSpec(cdi_folder_, next));
  }
  const std::lock_guard lock(mutex_);
  spec_ = std::move(next);
  return Status::Ok();
}

Result<HostDevices::Nodes> HostDevices::ReadNodes() {
  Nodes nodes;
  const auto add = [&](const std::string& uuid, const std::string& gpu,
                       std::optional<uint32_t> instance) {
    auto found = device::DeviceNodesOf(gpu, instance, host_);
    if (!found.ok()) return LogLack(uuid, found.status());
    lacks_.erase(uuid);
    nodes[uuid] = std::move(found).value();
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
  return nodes;
}

void HostDevices::LogLack(const std::string& uuid, const Status& why) {
  std::string& logged = lacks_[uuid];
  if (logged == why.message()) return;
  logged = why.message();
  Log(LogLevel::kWarn, "offering device as unhealthy: its device nodes are unknown",
      {{"device", uuid}, {"error", why.message()}});
}

Result<kubelet::ContainerGrant> HostDevices::FilesOf(
    const std::vector<std::string>& visible) const {
  const std::lock_guard lock(mutex_);
  kubelet::ContainerGrant grant;
  // NVIDIA's container runtime adds the GPUs that this variable names. Images may set it to "all".
  grant.environment["NVIDIA_VISIBLE_DEVICES"] = "void";
  std::set<std::string> nodes(spec_.driver.device_nodes.begin(), spec_.driver.device_nodes.end());
  for (const std::string& uuid : visible) {
    const auto found = spec_.devices.find(uuid);
    if (found == spec_.devices.end()) {
      return Status(Code::kUnavailable,
                    fmt::format("the agent does not know the device nodes of {}", uuid));
    }
    nodes.insert(found->second.begin(), found->second.end());
  }
  grant.device_nodes.assign(nodes.begin(), nodes.end());
  for (const device::DriverFile& mount : device::MountsOf(spec_.driver)) {
    grant.mounts.push_back({mount.host_path, mount.container_path, true});
  }
  return grant;
}

}  // namespace nos::agent
