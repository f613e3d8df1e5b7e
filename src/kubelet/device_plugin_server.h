// Serves the kubelet's device-plugin API: one plugin per resource, each on its own socket in the
// kubelet's directory.
//
//   DevicePluginServer plugin({.on_allocate = wake_agent});
//   Status offered = plugin.Offer({{"nvidia.com/mig-1g.5gb", "MIG-..."}});
//
// Offer() pushes lists to the kubelet at once, through open streams. A device outside the newest
// offer is refused even if the kubelet has not read the new list; a device that has just left the
// offer is refused from RefuseAllocation() on. The server registers again with a kubelet that
// restarts (a new kubelet.sock), empties its directory or ends a stream. A resource once offered
// stays registered, if necessary with no devices.
//
// Source: k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 and the kubelet's
// pkg/kubelet/cm/devicemanager. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/back_off.h"
#include "base/clock.h"
#include "kubelet/device_plugin.h"
#include "kubelet/grpc_server.h"
#include "kubelet/plugin_registrar.h"
#include "kubelet/pod_cgroups.h"

namespace nos::kubelet {

// The way in which a container receives its devices.
enum class Handover {
  kEnvironment,  // NVIDIA_VISIBLE_DEVICES, read by NVIDIA's container runtime
  kCdi,          // names of CDI devices, read by the container runtime (kubelets from 1.28 on)
  kNodes,        // device nodes and files, passed on by the kubelet: any runtime
};

struct Allocation {
  std::string resource;
  std::vector<std::string> device_ids;
};

// The grant for one container: environment, mounts and visible devices.
struct ContainerGrant {
  struct Mount {
    std::string host_path, container_path;
    bool read_only = false;
    friend bool operator==(const Mount&, const Mount&) = default;
  };
  // Devices handed over by Handover, instead of the allocated ids.
  std::vector<std::string> visible;
  std::map<std::string, std::string> environment;
  std::vector<Mount> mounts;
  std::vector<std::string> device_nodes{};  // at the same path in the container, read and write
};

// The kubelet's choice of devices for a container.
struct Choice {
  std::string resource;
  std::vector<std::string> available, must_include;  // candidates; subset that must be chosen
  int size = 0;                                      // number of devices to choose
};

struct DevicePluginOptions {
  std::string folder = "/var/lib/kubelet/device-plugins";
  Handover handover = Handover::kEnvironment;
  std::string cdi_kind = "nvidia.com/gpu";  // the device's name is then "nvidia.com/gpu=MIG-..."
  // With kNodes: environment, mounts and device nodes of these visible devices. An error refuses
  // the pod. Must not block, nor call this plugin server.
  std::function<Result<ContainerGrant>(const std::vector<std::string>& visible)> files{};
  // Time limit for the kubelet to read the lists in Offer(), and for a stream that lags behind.
  Duration patience = std::chrono::seconds(5);
  // The kubelet tries to reach a plugin for 10 s before it answers.
  Duration register_timeout = std::chrono::seconds(12);
  // Between attempts to register.
  BackOff pauses{std::chrono::milliseconds(200), std::chrono::seconds(10)};
  // Returns the grant for a container's devices; none, or empty: only makes their ids visible.
  // Called for each container after its devices were checked. An error refuses the pod, and its
  // message appears in the pod's Event. Must not block, nor call this plugin server.
  std::function<Result<std::optional<ContainerGrant>>(const Allocation&)> grant{};
  // Returns the preferred devices. The kubelet asks if it has a choice, and need not follow; with
  // fewer ids than `size` it chooses itself. Must not block, nor call this plugin server.
  std::function<std::vector<std::string>(const Choice&)> prefer{};
  // Shows whether a device is still in use by a pod that the kubelet takes for gone; null: unknown.
  // The pods have this time to end.
  PodCgroups* cgroups = nullptr;
  Duration in_use_patience = std::chrono::seconds(2);
  // Called after an allocation. Must not block, nor call this plugin server.
  std::function<void(const Allocation&)> on_allocate{};
};

// Counters since the start, per resource, for metrics.
struct PluginCounts {
  uint64_t registrations = 0, failed_registrations = 0;
  uint64_t allocations = 0, refusals = 0;  // calls of Allocate
  bool connected = false;                  // the kubelet watches the list now
};

class DevicePluginServer final : public DevicePlugin {
 public:
  explicit DevicePluginServer(DevicePluginOptions options);
  // Removes the sockets: the kubelet then counts all devices as unhealthy.
  ~DevicePluginServer() override;

  // OK once the kubelet has read every list. Errors: kUnavailable (the kubelet cannot be reached or
  // does not read, with the cause; the offer stays in force and reaches the kubelet when it
  // returns), kInvalid (the kubelet would reject a resource or device; nothing is offered).
  Status Offer(const std::vector<OfferedDevice>& devices) override;
  bool RefuseAllocation(const std::string& device_id) override;
  void Avoid(const std::map<std::string, std::string>& users) override;

  std::map<std::string, PluginCounts> Counts() const;

 private:
  struct Plugin {
    std::map<std::string, bool> devices;  // id -> healthy
    // Devices off the list but whose allocation is not refused yet; those of them that were
    // allocated since.
    std::set<std::string> leaving, taken_late;
    uint64_t allocations = 0, refusals = 0;
  };

  void TakeOver(const std::vector<OfferedDevice>& devices);
  Status WaitForKubelet();
  // The first plugin whose list the kubelet has not read, with the cause; "" if none.
  std::string Behind() const;
  GrpcAnswer Answer(const std::string& resource, std::string_view method,
                    const std::string& request);
  GrpcAnswer Prefer(const std::string& resource, const std::string& request) const;
  void LeaveOutAvoided(Choice& choice) const;
  std::string FindInUse(const std::vector<std::string>& ids) const;
  GrpcAnswer Allocate(const std::string& resource, const std::string& request);
  GrpcAnswer Refuse(Plugin& plugin, GrpcCode code, std::string message);

  const DevicePluginOptions options_;
  std::mutex offer_mutex_;  // one Offer at a time; locked before all others

  mutable std::mutex mutex_;  // guards the next four; locked after the server's
  std::condition_variable changed_;
  uint64_t changes_ = 0;                        // number of changes of watches
  std::map<std::string, Plugin> plugins_;       // by resource; never shrinks
  std::map<std::string, std::string> avoided_;  // the argument of Avoid

  WakeUp wake_up_;
  GrpcServer server_;
  PluginRegistrar registrar_;
};

}  // namespace nos::kubelet
