// Offers MPS shares through Nebuly's device plugin. The plugin reads the shares from a key of its
// ConfigMap that a label of the node names, and runs the MPS daemon. Another plugin offers all
// other devices.
//
// A key is never changed: its name is derived from its text. A change takes these steps, because
// the plugin's config-manager exits if the label names a file that does not exist:
//   1. Write the key.
//   2. Ask the kubelet to update the ConfigMap in the plugin's pod, and wait until the file exists.
//   3. Set the label. The plugin restarts its servers; running pods are not affected.
//   4. Wait until the kubelet offers the requested shares.
//   5. Delete older keys of the node.
// A valid configuration is never rewritten, whichever component wrote it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/device_plugin/nebuly_config_map.h"
#include "agent/device_rules.h"
#include "agent/nebuly_config.h"
#include "agent/node/devices.h"
#include "base/clock.h"
#include "device/actuator.h"
#include "device/nebuly_gpus.h"
#include "kube/client.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::agent {

// Number of shares of each size that the plugin must offer for each GPU so that it offers no shares
// other than these: the shares numbered from 0 without a gap. Other devices are ignored.
NebulyShares SharesIn(const std::vector<kubelet::OfferedDevice>& devices);

// Replaces the placements of share targets by actual shares. A target only requests sizes and
// numbers of shares. Shares that pods hold are taken first, then those with the lowest numbers,
// because the plugin can only remove the highest numbers. A free share above a gap cannot be
// offered, so another one takes its place. A GPU that a pod holds as a whole gets no shares; the
// result lists it as an obstacle.
std::vector<gpu::Obstacle> MatchShares(std::vector<device::Target>& targets,
                                       const NodeDevices& devices);
// Ids of the lower-numbered shares that the plugin also offers as long as it offers `ids`.
std::set<std::string> SharesBelow(const std::set<std::string>& ids);
// The shares that stay if `ids` must stay: includes existing lower-numbered shares, and leaves out
// free shares that the plugin cannot offer or that do not fit beside the shares in use.
std::set<std::string> WithSharesBelow(std::set<std::string> ids, const NodeDevices& devices);
// Leaves out shares that are free and that the kubelet does not offer, and shared GPUs that a pod
// holds as a whole.
NodeDevices AsShown(NodeDevices devices, const kubelet::DevicePlugin& plugin);

// True if one of the pod's ConfigMap volumes contains the file; no value if the volumes are not
// visible here. `folder`: the kubelet's pods folder.
std::optional<bool> PodHasFile(const std::string& folder, const std::string& uid,
                               const std::string& file);

struct NebulyPluginOptions {
  NebulyConfigMapOptions config_map{};
  std::string selector = "app.kubernetes.io/name=nebuly-nvidia-device-plugin";
  std::string pods_folder = "/var/lib/kubelet/pods";
  // Used if the plugin's volumes are not visible. A kubelet updates ConfigMap volumes within two
  // minutes: up to one minute until the next sync, and one minute of cache lifetime.
  Duration volume_lag = std::chrono::minutes(2);
  Duration patience = std::chrono::minutes(3);  // then an error is reported
  Duration look_while_waiting = std::chrono::seconds(10);
  // Interval of checks while ConfigMap and label are right.
  Duration look_again = std::chrono::minutes(5);
};

// Also gives the agent the plugin's rules (AgentExtras::rules): shares have fixed numbers, and
// those that are to be destroyed leave the offer at once, so that the plugin is reconfigured only
// once.
class NebulyPlugin final : public kubelet::DevicePlugin, public DeviceRules {
 public:
  // The node's GPUs: Backend::ListGpus.
  using Gpus = std::function<Result<std::vector<device::GpuInfo>>()>;

  // References must outlive this. `others` offers all devices that are not shares.
  NebulyPlugin(NebulyPluginOptions options, kubelet::DevicePlugin& others,
               kube::Transport& transport, kubelet::PodResources& pod_resources,
               device::NebulyGpus& shares, Gpus gpus, const Clock& clock)
      : options_(std::move(options)),
        map_(options_.config_map, transport),
        client_(transport),
        others_(others),
        pod_resources_(pod_resources),
        shares_(shares),
        gpus_(std::move(gpus)),
        clock_(clock) {}

  // OK if the kubelet offers these shares and `others` has been called. Error: kUnavailable: not
  // yet, call again. kDeadline: after `patience`; the message says where an administrator should
  // look. kNotFound, kPermission: as NebulyConfigMap.
  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override;
  bool RefuseAllocation(const std::string& device_id) override;
  // Each change of the shares restarts the plugin's servers, so all changes of a plan are made at
  // once.
  void Avoid(const std::map<std::string, std::string>& users) override { others_.Avoid(users); }
  bool Withdraws() const override { return others_.Withdraws() && !shares_.AnyShared(); }
  bool Shows(const std::string& device_id) const override;

  std::vector<gpu::Obstacle> MatchTargets(std::vector<device::Target>& targets,
                                          const NodeDevices& devices) const override {
    return MatchShares(targets, devices);
  }
  std::set<std::string> Keep(std::set<std::string> ids, const NodeDevices& devices) const override {
    return WithSharesBelow(std::move(ids), devices);
  }
  NodeDevices Shown(NodeDevices devices) const override {
    return AsShown(std::move(devices), *this);
  }
  std::set<std::string> LeftOut(const std::map<std::string, std::string>& unwanted) const override;

 private:
  using Devices = std::vector<kubelet::OfferedDevice>;
  using Texts = std::map<std::string, std::string>;

  Status OfferShares(const Devices& shares);
  Status Follow(const NebulyShares& wanted, bool offered);
  Status Publish(const NebulyShares& wanted, const Texts& texts);
  Status Confirm(const std::string& key, const NebulyShares& wanted, const Texts& texts);
  std::set<std::string> OldKeys(const Texts& texts, const std::string& but) const;
  Result<bool> Arrived(const std::string& key);
  Status NotYet(const std::string& what);
  Status Leave();
  Result<std::vector<Json>> PluginPods();

  const NebulyPluginOptions options_;
  NebulyConfigMap map_;
  kube::Client client_;
  kubelet::DevicePlugin& others_;
  kubelet::PodResources& pod_resources_;
  device::NebulyGpus& shares_;
  const Gpus gpus_;
  const Clock& clock_;
  std::optional<std::set<std::string>> shown_;  // shares that the kubelet offers
  std::optional<NebulyShares> settled_;         // offered, and ConfigMap and label agree
  std::optional<NebulyShares> sought_;          // not offered yet
  Time since_{};                                // start of the current attempt for sought_
  bool left_ = false;  // no GPU is shared; label and keys have been removed
  Time look_again_{};
  std::optional<NebulyShares> named_;  // named by label and ConfigMap, and not offered yet
  std::string waiting_;                // the message for that state
  std::string written_key_;
  Time written_{};  // when that key was written or first seen
  // UIDs of the plugin's pods that were annotated for written_key_
  std::set<std::string> reminded_;
};

}  // namespace nos::agent
