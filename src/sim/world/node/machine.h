// A node with simulated GPUs, the kubelet, and the agent as a process. Only the agent and the pods
// that hold MPS shares know of the shares: the driver does not.
//
//   NOS_ASSIGN(std::unique_ptr<Machine> machine, Machine::Make(spec, env, times));
//   while (machine->kubelet().Step()) {}
//   machine->LoseGpu(0);                              // until RestoreGpu(0) or Reboot()
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "sim/world/events/process.h"
#include "sim/world/node/claim_driver.h"
#include "sim/world/node/device_faults.h"
#include "sim/world/node/environment.h"
#include "sim/world/node/faulty_kubelet.h"
#include "sim/world/node/faulty_transport.h"
#include "sim/world/node/gpu_outages.h"
#include "sim/world/node/watched_parts.h"
#include "sim/world/node/watched_plain.h"
#include "sim/world/node/watched_shares.h"

namespace nos::sim {

struct ApiTruth;

struct MachineTimes {
  KubeletTimes kubelet;
  device::SimLatency devices;
  agent::AgentConfig agent;
  BackOff reset_pauses = agent::SharingOptions{}.reset_pauses;
};

class Machine {
 public:
  // The node's instances and shares exist from the start; the caller creates the pods that hold
  // `used` ones. Error: kInvalid for a layout that a GPU does not support.
  static Result<std::unique_ptr<Machine>> Make(const NodeSpec& spec, const Environment& env,
                                               const MachineTimes& times);

  VirtualNode& kubelet() { return *kubelet_; }
  const VirtualNode& kubelet() const { return *kubelet_; }
  // Null if the catalogue knows none of the node's GPUs. agent() is also null if the node is not
  // managed.
  device::SimGpus* gpus() { return gpus_.get(); }
  const device::SimGpus* gpus() const { return gpus_.get(); }
  Process* agent() { return agent_.get(); }
  const Process* agent() const { return agent_.get(); }
  // The driver of Dynamic Resource Allocation; null unless the node has `dra`.
  ClaimDriver* driver() { return driver_.get(); }
  const ClaimDriver* driver() const { return driver_.get(); }
  // The GPUs as the agent sees them, including shares. Null under the conditions of gpus().
  device::Backend* backend();
  size_t gpu_count() const { return models_.size(); }
  // The model in the current sharing mode: for a GPU shared by MPS, a model of gpu/shares.h.
  const gpu::Model& model(size_t gpu) const;
  // The model that the GPU can switch to once it is unused; null if there is none.
  const gpu::Model* alternative(size_t gpu) const;
  // The true content of the GPU: instances, parts instead of divided instances, or shares,
  // including shares of former agents that pods still hold.
  std::vector<device::GpuInstance> Instances(size_t gpu) const;

  const agent::AgentConfig& agent_config() const { return times_.agent; }
  // Time of the last disturbance that nos has to tolerate: a fault, a reboot.
  std::optional<Time> LastDisturbance() const;

  // Power off and on: instances disappear, kubelet and agent restart.
  void Reboot();
  // Calls for this GPU get no answer until it is restored or the node reboots.
  void LoseGpu(int gpu) { outages_.Lose(gpu); }
  void RestoreGpu(int gpu) { outages_.Restore(gpu); }
  // Other outages of GPUs.
  GpuOutages& outages() { return outages_; }
  // Start of the loss, by GPU; of those that hang, too.
  const std::map<int, Time>& lost_gpus() const { return outages_.since(); }
  // The GPU's MPS daemon dies; RestoreDaemon starts a new one. REQUIRES: a node with shares.
  void LoseDaemon(int gpu);
  void RestoreDaemon(int gpu);
  // True if programs can use the GPU's shares now.
  bool ServesShares(int gpu) const {
    return !lost_gpus().contains(gpu) && !lost_daemons_.contains(gpu);
  }
  DeviceFaults& device_faults() { return faults_; }
  // Kubelet, agent and driver, as far as there are such.
  std::vector<Actor*> Actors();

 private:
  Machine(const NodeSpec& spec, const Environment& env, const MachineTimes& times);
  Status PlaceInstances(const NodeSpec& spec);
  void MakeAgent();
  void MakeDriver();
  device::SimHooks DriverHooks();
  void MakeShares();
  bool IsShared(size_t gpu) const;
  bool IsPlain(size_t gpu) const;
  const gpu::Model* UnsharedModel(size_t gpu) const;
  const gpu::Model* SharesOf(size_t gpu) const;
  std::vector<device::GpuInstance> MigInstances(size_t gpu) const;
  void AddHeld(size_t gpu, std::vector<device::GpuInstance>& instances) const;
  bool IsBusy(const std::string& uuid) const;
  device::SimHooks Hooks();
  void OnDestroy(const device::GpuInstance& instance);
  void OnReset(const std::string& uuid);
  void OnWithdrawal(const kubelet::OfferedDevice& device);
  // The API server's objects for this node now; empty if it was deleted or is forged.
  ApiTruth TruthNow() const;

  // The agent's view of the GPUs, one layer above the other. Null before the first agent.
  struct Layers {
    std::unique_ptr<WatchedParts> parts;
    std::unique_ptr<WatchedShares> shares;
    std::unique_ptr<WatchedPlain> plain;
  };

  std::string name_;
  Environment env_;
  MachineTimes times_;
  Life kubelet_life_, agent_life_;
  FaultyTransport kubelet_transport_, agent_transport_;
  DeviceFaults faults_;
  std::vector<const gpu::Model*> models_;
  std::unique_ptr<VirtualNode> kubelet_;
  std::unique_ptr<device::SimGpus> gpus_;
  Layers layers_;                            // of the last agent
  std::vector<std::string> initial_shares_;  // ids; empty once an agent has adopted them
  device::GpuHealth health_;
  std::unique_ptr<FaultyKubelet> sockets_;
  std::unique_ptr<Process> agent_;
  std::unique_ptr<ClaimDriver> driver_;
  GpuOutages outages_;
  std::set<int> lost_daemons_;
  std::optional<Time> disturbed_;  // last reboot, or last loss or return of a daemon
};

}  // namespace nos::sim
