// The claim driver of a node with all that it needs: ResourceSlices, watch of claims, registration
// with the kubelet, a queue for each GPU.
//
//   ClaimService claims(options, collaborators);
//   claims.Use(true, node_uid);              // by the agent, from its own thread
//   while (...) { const Time next = claims.Step(clock.Now()); ... wait for wake or next ... }
//
// While it is not used it withdraws the slices, serves the claims that are left, and is released
// when there are none. A node that never used it costs nothing.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/claim_interface.h"
#include "agent/claims/driver.h"
#include "agent/claims/fault_keeper.h"
#include "agent/claims/gpu_queues.h"
#include "agent/claims/slice_publisher.h"
#include "base/clock.h"
#include "device/health.h"
#include "gpu/catalogue.h"
#include "kube/cache.h"
#include "kube/event_recorder.h"
#include "kube/workers.h"
#include "kubelet/dra_plugin_server.h"
#include "kubelet/pod_resources.h"

namespace nos::agent {

struct ClaimServiceOptions {
  bool enabled = false;  // if false, Use(true) has no effect
  // Announce devices for extended resources: "always", "never", or "auto": if the version of the
  // node's kubelet serves claims for them (1.36 or later).
  std::string extended_resources = "auto";
  // Announce devices that claims share: memory of GPUs and instances by MPS, and time slices.
  bool shares = false;
  int time_slices = 0;  // claims that may take turns on a device; 0, 1: none
  std::string node;
  std::string plugins = "/var/lib/kubelet/plugins";
  std::string registry = "/var/lib/kubelet/plugins_registry";
  std::string cdi_folder = "/var/run/cdi";
  device::HostFolders host{};
  Duration poll = std::chrono::seconds(30);          // of GPUs and slices
  Duration retry = std::chrono::seconds(5);          // after an error
  Duration relist_every = std::chrono::minutes(10);  // of claims
};

struct ClaimServiceCollaborators {
  kube::Transport& transport;
  const gpu::Catalogue& catalogue;
  kubelet::PodResources& pod_resources;
  // Lists all GPUs. Called by Step.
  std::function<Result<std::vector<device::GpuInfo>>()> gpus{};
  // Makes a backend for the queue of one GPU, so that GPUs need not wait for each other.
  std::function<std::unique_ptr<device::Backend>()> make_backend{};
  const device::GpuHealth* health = nullptr;  // null: the driver reports no health
  ShareDaemons* daemons = nullptr;            // null: there are no shares by MPS
  std::function<void()> wake{};               // Step has work; from any thread
  Metrics* metrics = nullptr;                 // null: nothing is counted
};

class ClaimService final : public ClaimInterface {
 public:
  ClaimService(ClaimServiceOptions options, ClaimServiceCollaborators collaborators);
  ~ClaimService() override;
  ClaimService(const ClaimService&) = delete;

  void Use(bool use, const std::string& node_uid) override;
  bool Released() const override { return released_; }

  // Does what is due, and returns when to call it again at the latest. For one thread.
  Time Step(Time now);
  // The last error of Step; OK: everything is as it should be.
  const Status& problem() const { return problem_; }

 private:
  // The wish of the agent; none: it has not decided yet.
  struct Wanted {
    std::optional<bool> use;
    std::string node_uid;
  };
  // The last read of GPUs and slices: when it is due again, unless one of the others differs.
  struct Read {
    Time next{};
    std::string node_uid{};
    std::vector<device::HealthCondition> health{};
    std::set<std::string> ending{};  // shared devices that are given to no further claim
    bool withdrawn = false;          // the node has no slices
  };

  Status Start();
  Status ReadGpus();
  bool ServesExtendedResources();
  Status UpdateSlices(Time now, const Wanted& wanted);
  bool Release();
  void Call(std::function<void(kube::Client&)> call);
  std::vector<dra::GpuOfDriver> AnnouncedGpus() const;
  // Devices of claims that are allocated or prepared, which other claims may share.
  std::set<std::string> SharedDevices() const;
  void FollowClaims(Time now);
  void WriteReports(Time now);
  void AnnounceFailure(const CreationReport& report, Time now);
  dra::GpuOfDriver FactsOf(const device::GpuInfo& info) const;
  void FollowFaults(Time now);
  void PublishHealth(Time now, bool gpus_are_read);

  const ClaimServiceOptions options_;
  const ClaimServiceCollaborators others_;
  mutable std::mutex mutex_;
  Wanted wanted_;  // guarded by mutex_
  std::atomic<bool> released_;
  Status problem_;
  Read read_;
  FaultKeeper faults_;
  kube::EventRecorder events_{"nos-agent"};
  std::vector<dra::GpuOfDriver> gpus_;
  bool kubelet_serves_extended_ = false;  // as last known
  SlicePublisher slices_;
  bool loaded_ = false;
  std::unique_ptr<kube::Cache<AllocatedClaim>> claims_;
  kube::Client client_;
  ClaimDriver driver_;
  // Functions of workers and queues answer the kubelet, so these end first (destructor).
  std::unique_ptr<kubelet::DraPluginServer> server_;
  GpuQueues queues_;
  std::mutex workers_mutex_;
  std::unique_ptr<kube::Workers> workers_;  // guarded by workers_mutex_; null: ending
};

}  // namespace nos::agent
