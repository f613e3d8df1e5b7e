// Offers MIG devices through NVIDIA's device plugin. The plugin reads the devices only when it
// starts, so its pod on this node is deleted whenever the kubelet's list differs from the existing
// devices. Devices that the plugin still lists after a restart, although nos does not know them,
// exist: for example on a GPU that nos does not manage.
//
// A device can be removed from the plugin's list only by destroying it. Devices in use are
// therefore protected only by the agent's last check before it destroys.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/client.h"
#include "kubelet/device_plugin.h"

namespace nos::agent {

struct NvidiaPluginOptions {
  std::string node;
  std::string ns{};  // empty: any
  std::string selector = "app=nvidia-device-plugin-daemonset";
  // Pause between restarts; doubles up to `longest_pause`.
  Duration first_pause = std::chrono::seconds(20), longest_pause = std::chrono::minutes(5);
};

class NvidiaPlugin final : public kubelet::DevicePlugin {
 public:
  // The devices that the kubelet can hand out: PodResourcesClient::Allocatable.
  using Allocatable = std::function<Result<std::vector<kubelet::OfferedDevice>>()>;

  // Transport and clock must outlive this.
  NvidiaPlugin(NvidiaPluginOptions options, kube::Transport& transport, Allocatable allocatable,
               const Clock& clock)
      : options_(std::move(options)),
        client_(transport),
        allocatable_(std::move(allocatable)),
        clock_(clock) {}

  // OK if the kubelet's list contains all healthy MIG devices of `devices` and no destroyed ones.
  // Error: kUnavailable until the plugin has restarted and the list is right: call again. kNotFound
  // (no pod of the plugin) and kPermission need an administrator.
  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override;
  bool Withdraws() const override { return false; }

 private:
  Status Restart(const std::set<std::string>& wanted);

  const NvidiaPluginOptions options_;
  kube::Client client_;
  const Allocatable allocatable_;
  const Clock& clock_;
  std::set<std::string> ours_;     // devices that nos has ever offered
  std::set<std::string> foreign_;  // other devices that a restart did not remove from the list
  std::set<std::string> restarted_for_;  // the device list of the last restart
  int restarts_ = 0;                     // consecutive restarts for the same devices
  Time not_before_{};                    // earliest time of the next restart
};

}  // namespace nos::agent
