#include "agent/nvidia_plugin.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/back_off.h"
#include "base/log.h"
#include "kube/work_queue.h"

namespace nos::agent {
namespace {

constexpr std::string_view kMigResources = "nvidia.com/mig-";

// Keys "resource id". The id alone is ambiguous: the driver derives it from the instance's number,
// so a later instance of another profile can have the same id.
std::set<std::string> MigDevices(const std::vector<kubelet::OfferedDevice>& devices, bool healthy) {
  std::set<std::string> all;
  for (const kubelet::OfferedDevice& device : devices) {
    if (device.resource.starts_with(kMigResources) && device.healthy == healthy) {
      all.insert(device.resource + " " + device.device_id);
    }
  }
  return all;
}

}  // namespace

Status NvidiaPlugin::Offer(const std::vector<kubelet::OfferedDevice>& devices) {
  const std::set<std::string> wanted = MigDevices(devices, true);
  const std::set<std::string> broken = MigDevices(devices, false);
  NOS_ASSIGN(const std::vector<kubelet::OfferedDevice> allocatable, allocatable_());
  const std::set<std::string> known = MigDevices(allocatable, true);
  const bool all = std::ranges::includes(known, wanted);
  ours_.insert(wanted.begin(), wanted.end());
  ours_.insert(broken.begin(), broken.end());
  const bool had_its_time = all && restarts_ > 0 && clock_.Now() >= not_before_;
  std::set<std::string> foreign, gone;
  for (const std::string& device : known) {
    if (wanted.contains(device) || broken.contains(device)) continue;
    const bool is_there = !ours_.contains(device) && (had_its_time || foreign_.contains(device));
    (is_there ? foreign : gone).insert(device);
  }
  foreign_ = std::move(foreign);
  if (all && gone.empty()) {
    restarts_ = 0;
    restarted_for_.clear();
    not_before_ = Time{};
    return Status::Ok();
  }
  if (wanted != restarted_for_) {
    restarted_for_ = wanted;
    restarts_ = 0;
    not_before_ = Time{};
  }
  if (clock_.Now() >= not_before_) NOS_RETURN_IF_ERROR(Restart(wanted));
  return {Code::kUnavailable,
          "waiting for NVIDIA's device plugin to register the MIG devices with the kubelet"};
}

Status NvidiaPlugin::Restart(const std::set<std::string>& wanted) {
  kube::ListOptions options;
  options.label_selector = options_.selector;
  options.field_selector = "spec.nodeName=" + options_.node;
  NOS_ASSIGN(const kube::ObjectList list, client_.List(kube::kPods, options_.ns, options));
  if (list.items.empty()) {
    return NotFound(
        fmt::format("no pod of NVIDIA's device plugin on node {} has the labels {}{}: is "
                    "devicePlugin.selector right?",
                    options_.node, options_.selector,
                    options_.ns.empty() ? "" : " in namespace " + options_.ns));
  }
  for (const Json& pod : list.items) {
    const std::string_view uid = FindString(pod, "metadata", "uid");
    JsonObject precondition;
    if (!uid.empty()) precondition["preconditions"] = {{"uid", uid}};
    const Status deleted = client_.Delete(kube::kPods, FindString(pod, "metadata", "namespace"),
                                          FindString(pod, "metadata", "name"), precondition);
    if (!deleted.ok() && deleted.code() != Code::kNotFound) return deleted;
  }
  Log(LogLevel::kInfo, "restarting NVIDIA's device plugin",
      {{"node", options_.node}, {"devices", std::to_string(wanted.size())}});
  const BackOff pauses{options_.first_pause, options_.longest_pause};
  not_before_ = clock_.Now() + pauses.After(++restarts_);
  return Status::Ok();
}

}  // namespace nos::agent
