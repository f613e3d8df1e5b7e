#include "kubelet/device_plugin_server.h"

#include <deviceplugin.pb.h>
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <thread>
#include <utility>

#include "base/text.h"

namespace nos::kubelet {
namespace {

constexpr std::string_view kService = "/v1beta1.DevicePlugin/";
constexpr size_t kMaxId = 63;         // deviceplugin/v1beta1, Device.ID
constexpr size_t kMaxResource = 128;  // the path of a unix socket has at most 107 bytes

// Checks for a name such as "nvidia.com/mig-1g.5gb" with characters that are valid in a file name.
bool IsResource(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '/';
  });
  return plain && name.size() <= kMaxResource && std::count(name.begin(), name.end(), '/') == 1 &&
         name.front() != '/' && name.back() != '/';
}

Status Check(const std::vector<OfferedDevice>& devices) {
  for (const OfferedDevice& device : devices) {
    if (!IsResource(device.resource)) {
      return Invalid(fmt::format("'{}' is no name of a resource such as nvidia.com/mig-1g.5gb",
                                 device.resource));
    }
    if (device.device_id.empty() || device.device_id.size() > kMaxId) {
      return Invalid(fmt::format("device id '{}' of {}: the kubelet takes 1 to {} bytes",
                                 device.device_id, device.resource, kMaxId));
    }
  }
  return Status::Ok();
}

std::string ListOf(const std::map<std::string, bool>& devices) {
  v1beta1::ListAndWatchResponse list;
  for (const auto& [id, healthy] : devices) {
    v1beta1::Device& device = *list.add_devices();
    device.set_id(id);
    device.set_health(healthy ? "Healthy" : "Unhealthy");
  }
  return list.SerializeAsString();
}

void Add(const ContainerGrant& grant, v1beta1::ContainerAllocateResponse& container) {
  for (const auto& [name, value] : grant.environment) (*container.mutable_envs())[name] = value;
  for (const ContainerGrant::Mount& mount : grant.mounts) {
    v1beta1::Mount& added = *container.add_mounts();
    added.set_host_path(mount.host_path);
    added.set_container_path(mount.container_path);
    added.set_read_only(mount.read_only);
  }
  for (const std::string& node : grant.device_nodes) {
    v1beta1::DeviceSpec& added = *container.add_devices();
    added.set_host_path(node);
    added.set_container_path(node);
    added.set_permissions("rw");
  }
}

Status HandOver(const DevicePluginOptions& options, const std::vector<std::string>& ids,
                v1beta1::ContainerAllocateResponse& container) {
  switch (options.handover) {
    case Handover::kEnvironment:
      (*container.mutable_envs())["NVIDIA_VISIBLE_DEVICES"] = Join(ids, ",");
      break;
    case Handover::kCdi:
      for (const std::string& id : ids) {
        container.add_cdi_devices()->set_name(options.cdi_kind + "=" + id);
      }
      break;
    case Handover::kNodes: {
      NOS_ASSIGN(const ContainerGrant files, options.files(ids));
      Add(files, container);
      break;
    }
  }
  return Status::Ok();
}

// Fills in the owner's grant; without one, makes the devices visible.
Status Give(const DevicePluginOptions& options, const Allocation& allocation,
            v1beta1::ContainerAllocateResponse& container) {
  std::optional<ContainerGrant> grant;
  if (options.grant) {
    NOS_ASSIGN(grant, options.grant(allocation));
  }
  if (!grant) grant = ContainerGrant{allocation.device_ids, {}, {}};
  NOS_RETURN_IF_ERROR(HandOver(options, grant->visible, container));
  Add(*grant, container);
  return Status::Ok();
}

}  // namespace

DevicePluginServer::DevicePluginServer(DevicePluginOptions options)
    : options_(std::move(options)),
      server_({.patience = options_.patience},
              [this] {
                {
                  const std::lock_guard lock(mutex_);
                  ++changes_;
                }
                changed_.notify_all();
                wake_up_.Signal();
              }),
      registrar_({options_.folder, options_.register_timeout, options_.pauses}, server_, wake_up_) {
}

DevicePluginServer::~DevicePluginServer() = default;

Status DevicePluginServer::Offer(const std::vector<OfferedDevice>& devices) {
  NOS_RETURN_IF_ERROR(Check(devices));
  const std::lock_guard lock(offer_mutex_);
  TakeOver(devices);
  return WaitForKubelet();
}

void DevicePluginServer::TakeOver(const std::vector<OfferedDevice>& devices) {
  std::map<std::string, std::string> lists;  // resource -> serialized list
  {
    const std::lock_guard lock(mutex_);
    for (auto& [resource, plugin] : plugins_) {
      for (const auto& [id, healthy] : std::exchange(plugin.devices, {})) {
        if (healthy) plugin.leaving.insert(id);
      }
    }
    for (const OfferedDevice& device : devices) {
      Plugin& plugin = plugins_[device.resource];
      plugin.devices[device.device_id] = device.healthy;
      plugin.leaving.erase(device.device_id);
      plugin.taken_late.erase(device.device_id);
    }
    for (const auto& [resource, plugin] : plugins_) lists[resource] = ListOf(plugin.devices);
  }
  for (auto& [resource, list] : lists) {
    server_.Publish(registrar_.SocketOf(resource), std::move(list));
    const auto call = [this, name = resource](std::string_view method, const std::string& request) {
      return Answer(name, method, request);
    };
    registrar_.Keep(resource, {call, {"/v1beta1.DevicePlugin/ListAndWatch"}});
  }
}

bool DevicePluginServer::RefuseAllocation(const std::string& device_id) {
  const std::lock_guard lock(mutex_);
  bool taken = false;
  for (auto& [resource, plugin] : plugins_) {
    taken |= plugin.taken_late.erase(device_id) > 0;
    if (!taken) plugin.leaving.erase(device_id);
  }
  return !taken;
}

Status DevicePluginServer::WaitForKubelet() {
  const auto deadline = std::chrono::steady_clock::now() + options_.patience;
  std::unique_lock lock(mutex_);
  for (;;) {
    const uint64_t seen = changes_;
    lock.unlock();
    const std::string behind = Behind();
    if (behind.empty()) return Status::Ok();
    lock.lock();
    if (changed_.wait_until(lock, deadline, [&] { return changes_ != seen; })) continue;
    lock.unlock();
    const std::string still_behind = Behind();  // or the cause became known meanwhile
    return still_behind.empty() ? Status::Ok() : Status(Code::kUnavailable, still_behind);
  }
}

std::string DevicePluginServer::Behind() const {
  for (const auto& [resource, report] : registrar_.Reports()) {
    const GrpcServer::WatchState state = registrar_.WatchesOf(resource);
    if (state.caught_up) continue;
    if (state.watches > 0) {
      return fmt::format("the kubelet has not read the new list of {} yet", resource);
    }
    std::string why = report.trouble;
    if (why.empty()) {
      why = report.registrations > 0 ? "it was registered, but no watch came"
                                     : "it is not registered yet; is the kubelet running?";
    }
    return fmt::format("the kubelet does not watch {}: {}", resource, why);
  }
  return "";
}

std::map<std::string, PluginCounts> DevicePluginServer::Counts() const {
  std::map<std::string, PluginCounts> counts;
  for (const auto& [resource, report] : registrar_.Reports()) {
    const bool connected = registrar_.WatchesOf(resource).watches > 0;
    const std::lock_guard lock(mutex_);
    const Plugin& plugin = plugins_.at(resource);
    counts[resource] = {report.registrations, report.failures, plugin.allocations, plugin.refusals,
                        connected};
  }
  return counts;
}

GrpcAnswer DevicePluginServer::Answer(const std::string& resource, std::string_view method,
                                      const std::string& request) {
  if (method.starts_with(kService)) method.remove_prefix(kService.size());
  // The options do not ask for PreStartContainer, so the kubelet never calls it.
  if (method == "GetDevicePluginOptions") {
    v1beta1::DevicePluginOptions options;
    options.set_get_preferred_allocation_available(options_.prefer != nullptr);
    return {GrpcCode::kOk, options.SerializeAsString()};
  }
  if (method == "GetPreferredAllocation" && options_.prefer) return Prefer(resource, request);
  if (method == "Allocate") return Allocate(resource, request);
  return {GrpcCode::kUnimplemented, fmt::format("no method {} here", method)};
}

void DevicePluginServer::Avoid(const std::map<std::string, std::string>& users) {
  const std::lock_guard lock(mutex_);
  avoided_ = users;
}

// One of these devices whose last user still runs; "" if none. The cgroup of a pod that has ended
// may have processes for a moment; there is no event for its last one.
std::string DevicePluginServer::FindInUse(const std::vector<std::string>& ids) const {
  constexpr auto kBetween = std::chrono::milliseconds(20);
  if (options_.cgroups == nullptr) return "";
  std::map<std::string, std::string> users;
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& id : ids) {
      const auto user = avoided_.find(id);
      if (user != avoided_.end() && !user->second.empty()) users.insert(*user);
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + options_.in_use_patience;
  while (!users.empty()) {
    const auto cgroups = options_.cgroups->Read();
    if (!cgroups.ok()) return "";
    std::erase_if(users, [&](const auto& user) {
      const auto cgroup = cgroups->find(user.second);
      return cgroup == cgroups->end() || !cgroup->second;
    });
    if (users.empty()) break;
    if (std::chrono::steady_clock::now() >= deadline) return users.begin()->first;
    std::this_thread::sleep_for(kBetween);
  }
  return "";
}

// Unless too few are left.
void DevicePluginServer::LeaveOutAvoided(Choice& choice) const {
  std::vector<std::string> left;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::copy_if(choice.available, std::back_inserter(left), [&](const std::string& id) {
      return !avoided_.contains(id) || std::ranges::count(choice.must_include, id) > 0;
    });
  }
  if (std::ssize(left) >= choice.size) choice.available = std::move(left);
}

GrpcAnswer DevicePluginServer::Prefer(const std::string& resource,
                                      const std::string& request) const {
  v1beta1::PreferredAllocationRequest asked;
  if (!asked.ParseFromString(request)) {
    return {GrpcCode::kInvalidArgument, "the request is not readable"};
  }
  v1beta1::PreferredAllocationResponse answer;
  for (const auto& container : asked.container_requests()) {
    Choice choice{
        resource,
        {container.available_deviceids().begin(), container.available_deviceids().end()},
        {container.must_include_deviceids().begin(), container.must_include_deviceids().end()},
        container.allocation_size()};
    const size_t all = choice.available.size();
    LeaveOutAvoided(choice);
    std::vector<std::string> chosen = options_.prefer(choice);
    // The kubelet would choose from all of them itself.
    if (chosen.empty() && choice.available.size() < all) chosen = std::move(choice.available);
    v1beta1::ContainerPreferredAllocationResponse& preferred = *answer.add_container_responses();
    for (const std::string& id : chosen) preferred.add_deviceids(id);
  }
  return {GrpcCode::kOk, answer.SerializeAsString()};
}

// REQUIRES: mutex_ is held.
GrpcAnswer DevicePluginServer::Refuse(Plugin& plugin, GrpcCode code, std::string message) {
  ++plugin.refusals;
  return {code, std::move(message)};
}

GrpcAnswer DevicePluginServer::Allocate(const std::string& resource, const std::string& request) {
  v1beta1::AllocateRequest asked;
  if (!asked.ParseFromString(request)) {
    return {GrpcCode::kInvalidArgument, "the request is not readable"};
  }
  std::vector<std::string> all;
  for (const auto& container : asked.container_requests()) {
    all.insert(all.end(), container.devices_ids().begin(), container.devices_ids().end());
  }
  const std::string in_use = FindInUse(all);
  v1beta1::AllocateResponse answer;
  Allocation allocation{resource, {}};
  {
    const std::lock_guard lock(mutex_);
    Plugin& plugin = plugins_.at(resource);
    if (!in_use.empty()) {
      return Refuse(plugin, GrpcCode::kFailedPrecondition,
                    fmt::format("device {} of {} is still in use: containers of a Pod that was "
                                "deleted by force have not ended",
                                in_use, resource));
    }
    for (const auto& container : asked.container_requests()) {
      const std::vector<std::string> ids(container.devices_ids().begin(),
                                         container.devices_ids().end());
      for (const std::string& id : ids) {
        const auto device = plugin.devices.find(id);
        if (device != plugin.devices.end() && device->second) continue;
        if (plugin.leaving.contains(id)) {
          plugin.taken_late.insert(id);
          continue;
        }
        return Refuse(
            plugin, GrpcCode::kFailedPrecondition,
            fmt::format("device {} of {} is not offered any more: the GPU is being repartitioned "
                        "anew",
                        id, resource));
      }
      const Status given = Give(options_, {resource, ids}, *answer.add_container_responses());
      if (!given.ok()) return Refuse(plugin, GrpcCode::kInvalidArgument, given.message());
      allocation.device_ids.insert(allocation.device_ids.end(), ids.begin(), ids.end());
    }
    ++plugin.allocations;
  }
  if (options_.on_allocate) options_.on_allocate(allocation);
  return {GrpcCode::kOk, answer.SerializeAsString()};
}

}  // namespace nos::kubelet
