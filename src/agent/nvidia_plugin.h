// NVIDIA's device plugin as the one that offers MIG devices: it reads them when it starts, so it is
// restarted (its pod on this node is deleted) whenever the kubelet's list is not what is there.
// Devices that it still tells of after that, though nos does not, are there: of a GPU that nos
// leaves alone, for instance.
//
// Nothing can be taken off its list but by destroying it: what protects devices in use is the
// agent's last look alone.
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
  // After a restart, before the next one; doubled each time up to `longest_pause`.
  Duration first_pause = std::chrono::seconds(20), longest_pause = std::chrono::minutes(5);
};

class NvidiaPlugin final : public kubelet::DevicePlugin {
 public:
  // Tells what the kubelet can hand out: PodResourcesClient::Allocatable.
  using Allocatable = std::function<Result<std::vector<kubelet::OfferedDevice>>()>;

  // Transport and clock must outlive this.
  NvidiaPlugin(NvidiaPluginOptions options, kube::Transport& transport, Allocatable allocatable,
               const Clock& clock)
      : options_(std::move(options)),
        client_(transport),
        allocatable_(std::move(allocatable)),
        clock_(clock) {}

  // OK when the kubelet's list has all of these MIG devices that are healthy, and none that have
  // gone. Else kUnavailable until the plugin has been restarted and the list has come right: call
  // again. Errors that need a person: kNotFound (no pod of the plugin), kPermission.
  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override;
  bool Withdraws() const override { return false; }

 private:
  Status Restart(const std::set<std::string>& wanted);

  const NvidiaPluginOptions options_;
  kube::Client client_;
  const Allocatable allocatable_;
  const Clock& clock_;
  std::set<std::string> ours_;           // devices that nos has ever told of
  std::set<std::string> foreign_;        // others that a restart has not taken off the list
  std::set<std::string> restarted_for_;  // devices
  int restarts_ = 0;                     // in a row for the same devices
  Time not_before_{};                    // the next one
};

}  // namespace nos::agent
