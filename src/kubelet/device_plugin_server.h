// Serves the kubelet's device-plugin API: one plugin for each resource, each on a socket of its own
// in the kubelet's folder.
//
//   DevicePluginServer plugin({.on_allocate = wake_agent});
//   Status offered = plugin.Offer({{"nvidia.com/mig-1g.5gb", "MIG-..."}});
//
// Offer() pushes lists to the kubelet at once, through streams that stay open. What is not in the
// newest offer is refused from the moment Offer() is called, even if the kubelet has not read it.
// A kubelet that restarts (a new kubelet.sock) or empties its folder is registered with again; so
// it is when it ends a stream. A resource once offered stays registered, with no devices if need
// be.
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

#include "base/clock.h"
#include "kubelet/device_plugin.h"
#include "kubelet/grpc_server.h"
#include "kubelet/plugin_registrar.h"

namespace nos::kubelet {

// How a container learns of its devices.
enum class Handover {
  kEnvironment,  // NVIDIA_VISIBLE_DEVICES, read by NVIDIA's container runtime
  kCdi,          // names of CDI devices, read by the container runtime (kubelets from 1.28 on)
};

struct Allocation {
  std::string resource;
  std::vector<std::string> device_ids;
};

// What one container is given for the devices that the kubelet has chosen for it.
struct ContainerGrant {
  struct Mount {
    std::string host_path, container_path;
    bool read_only = false;
    friend bool operator==(const Mount&, const Mount&) = default;
  };
  // Handed over as Handover says, in place of the ids.
  std::vector<std::string> visible;
  std::map<std::string, std::string> environment;
  std::vector<Mount> mounts;
};

// Of which devices the kubelet is about to choose some for a container.
struct Choice {
  std::string resource;
  std::vector<std::string> available, must_include;  // all that may be chosen; those among them
  int size = 0;                                      // how many it takes
};

struct DevicePluginOptions {
  std::string folder = "/var/lib/kubelet/device-plugins";
  Handover handover = Handover::kEnvironment;
  std::string cdi_kind = "nvidia.com/gpu";  // "nvidia.com/gpu=MIG-..." is then a device's name
  // How long Offer() waits for the kubelet to read the lists, and a stream may lag behind.
  Duration patience = std::chrono::seconds(5);
  // The kubelet tries to reach a plugin for 10 s before it answers.
  Duration register_timeout = std::chrono::seconds(12);
  // Between attempts to register; doubled from first to longest.
  Duration first_pause = std::chrono::milliseconds(200);
  Duration longest_pause = std::chrono::seconds(10);
  // What the owner of the devices says of them; nothing, or empty: their ids are visible, and that
  // is all. Called for each container with devices that it may have. An error refuses the pod, and
  // its message is what the pod's Event shows. Must not block, nor call this plugin server.
  std::function<Result<std::optional<ContainerGrant>>(const Allocation&)> grant{};
  // Which devices go best together. The kubelet asks where it has a choice, and need not follow;
  // fewer than it takes: it chooses itself. Must not block, nor call this plugin server.
  std::function<std::vector<std::string>(const Choice&)> prefer{};
  // After a container has been given devices. Must not block, nor call this plugin server.
  std::function<void(const Allocation&)> on_allocate{};
};

// Since the start, by resource: for metrics.
struct PluginCounts {
  uint64_t registrations = 0, failed_registrations = 0;
  uint64_t allocations = 0, refusals = 0;  // calls of Allocate
  bool connected = false;                  // the kubelet watches the list now
};

class DevicePluginServer final : public DevicePlugin {
 public:
  explicit DevicePluginServer(DevicePluginOptions options);
  // Takes the sockets away: the kubelet counts all devices as unhealthy then.
  ~DevicePluginServer() override;

  // OK once the kubelet has read every list. Errors: kUnavailable (the kubelet cannot be reached or
  // does not read: says why; the offer stands nevertheless and reaches the kubelet once it is
  // back), kInvalid (a resource or device that the kubelet would not take; nothing is offered).
  Status Offer(const std::vector<OfferedDevice>& devices) override;
  bool Condemn(const std::string& device_id) override;

  std::map<std::string, PluginCounts> Counts() const;

 private:
  struct Plugin {
    std::map<std::string, bool> devices;  // id -> healthy
    // Off the list, but not condemned yet; and those of them that have been taken since.
    std::set<std::string> leaving, taken_late;
    uint64_t allocations = 0, refusals = 0;
  };

  void TakeOver(const std::vector<OfferedDevice>& devices);
  Status WaitForKubelet();
  // Says which plugin's list the kubelet has not read; "" when none.
  std::string Behind() const;
  GrpcAnswer Answer(const std::string& resource, std::string_view method,
                    const std::string& request);
  GrpcAnswer Prefer(const std::string& resource, const std::string& request) const;
  GrpcAnswer Allocate(const std::string& resource, const std::string& request);
  GrpcAnswer Refuse(Plugin& plugin, GrpcCode code, std::string message);

  const DevicePluginOptions options_;
  std::mutex offer_mutex_;  // one Offer at a time; taken before all others

  mutable std::mutex mutex_;  // guards the next three; taken after the server's
  std::condition_variable changed_;
  uint64_t changes_ = 0;                   // of watches
  std::map<std::string, Plugin> plugins_;  // by resource; only grows

  WakeUp wake_up_;
  GrpcServer server_;
  PluginRegistrar registrar_;
};

}  // namespace nos::kubelet
