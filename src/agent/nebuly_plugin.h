// Nebuly's device plugin as the one that offers MPS shares: it reads which from a key of its
// ConfigMap that a label of the node names, and has the MPS daemon. All other devices are another
// plugin's.
//
// A key is never changed: its name is made of its text. It is written; the kubelet is asked to
// bring it into the plugin's pod, and seen to have done so, since the plugin's config-manager ends
// where the label names a file that it does not have; the node is labelled, upon which the plugin
// starts its servers anew and pods go on running; the kubelet says that it offers what was asked;
// then older keys of the node are removed. What is right is left alone, whoever has written it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "agent/nebuly_config.h"
#include "agent/device_plugin/nebuly_config_map.h"
#include "agent/node/devices.h"
#include "device/actuator.h"
#include "device/nebuly_gpus.h"
#include "kube/client.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::agent {

// How many of each size the plugin is to offer of each GPU so that it offers no others than these:
// those that are numbered from 0 without a gap. Other devices are passed over.
NebulyShares SharesIn(const std::vector<kubelet::OfferedDevice>& devices);

// Targets ask for numbers and sizes of shares; which ones serve is a matter of what there is. First
// those that pods hold, then those of the lowest numbers, since the plugin can give up the highest
// only. One that is free above a gap serves nobody: another is asked for in its place. What a pod
// holds as a whole has none; an obstacle tells of it.
std::vector<gpu::Obstacle> MatchShares(std::vector<device::Target>& targets,
                                          const NodeDevices& devices);
// Ids of the shares that the plugin offers as long as it offers these.
std::set<std::string> SharesBelow(const std::set<std::string>& ids);
// What stays if these shall: with those below that are there, and without free shares that the
// plugin cannot offer so, or that do not fit beside what pods hold.
std::set<std::string> WithSharesBelow(std::set<std::string> ids, const NodeDevices& devices);
// Without what the kubelet does not offer and nobody holds, and without shared GPUs that a pod
// holds as a whole.
NodeDevices AsShown(NodeDevices devices, const kubelet::DevicePlugin& plugin);

// Whether the pod of this uid has this file in some ConfigMap of its; nothing: it cannot be seen
// from here. `folder`: the kubelet's, of pods.
std::optional<bool> PodHasFile(const std::string& folder, const std::string& uid,
                               const std::string& file);

struct NebulyPluginOptions {
  NebulyConfigMapOptions config_map{};
  std::string selector = "app.kubernetes.io/name=nebuly-nvidia-device-plugin";
  std::string pods_folder = "/var/lib/kubelet/pods";
  // Where the plugin's files cannot be seen: kubelets bring them within two minutes (one between
  // syncs, one that they may use what they have).
  Duration volume_lag = std::chrono::minutes(2);
  Duration patience = std::chrono::minutes(3);  // then somebody is told
  Duration look_while_waiting = std::chrono::seconds(10);
  Duration look_again = std::chrono::minutes(5);  // at a ConfigMap and a label that are right
};

class NebulyPlugin final : public kubelet::DevicePlugin {
 public:
  // Tells of the node's GPUs: Backend::ListGpus.
  using Gpus = std::function<Result<std::vector<device::GpuInfo>>()>;

  // References must outlive this. `others`: of all devices that are no shares.
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

  // OK when the kubelet offers these shares, and the others have been offered. kUnavailable: not
  // yet. kDeadline, after `patience`: a person should look where the message says. kNotFound,
  // kPermission: as NebulyConfigMap.
  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override;
  bool Condemn(const std::string& device_id) override;
  // Each change of the shares starts the plugin's servers anew: one for all of a plan.
  bool Withdraws() const override { return others_.Withdraws() && !shares_.AnyShared(); }
  bool Shows(const std::string& device_id) const override;

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
  std::optional<NebulyShares> settled_;         // offered, with ConfigMap and label
  std::optional<NebulyShares> sought_;          // not yet
  Time since_{};                                // that it is sought
  bool left_ = false;                           // no GPU is shared, and label and keys are gone
  Time look_again_{};
  std::optional<NebulyShares> named_;  // by label and ConfigMap, and not offered yet
  std::string waiting_;                // for what, then
  std::string written_key_;
  Time written_{};                  // that key, or first seen there
  std::set<std::string> reminded_;  // uids of the plugin's pods, of that key
};

}  // namespace nos::agent
