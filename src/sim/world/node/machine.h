// One node with all that is on it: simulated GPUs, the kubelet, and the agent as a process. What is
// shared by MPS is known to the agent alone, and to those who hold it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "sim/world/node/environment.h"
#include "sim/world/node/faulty_kubelet.h"
#include "sim/world/node/faulty_transport.h"
#include "sim/world/events/process.h"
#include "sim/world/node/watched_parts.h"
#include "sim/world/node/watched_plain.h"
#include "sim/world/node/watched_shares.h"

namespace nos::sim {

struct ApiTruth;

struct MachineTimes {
  KubeletTimes kubelet;
  device::SimLatency devices;
  agent::AgentConfig agent;
};

class Machine {
 public:
  // The node's instances and shares exist from the start; what `used` ones need beyond that is the
  // caller's. Error: kInvalid: a layout that its GPU cannot have.
  static Result<std::unique_ptr<Machine>> Make(const NodeSpec& spec, const Environment& env,
                                               const MachineTimes& times);

  VirtualNode& kubelet() { return *kubelet_; }
  const VirtualNode& kubelet() const { return *kubelet_; }
  // Null: the node has no GPUs that the catalogue knows, or no agent because it is not managed.
  device::SimGpus* gpus() { return gpus_.get(); }
  const device::SimGpus* gpus() const { return gpus_.get(); }
  Process* agent() { return agent_.get(); }
  const Process* agent() const { return agent_.get(); }
  // As the agent sees them, shares included. Null as gpus().
  device::Backend* backend();
  size_t gpu_count() const { return models_.size(); }
  // As it is divided now: of a GPU that is shared by MPS, one of gpu/shares.h.
  const gpu::Model& model(size_t gpu) const;
  // What it may be instead once nothing is used on it; null: nothing.
  const gpu::Model* other(size_t gpu) const;
  // What is truly there: instances, parts of divided ones in their place, or shares, those of
  // former agents that pods hold included.
  std::vector<device::GpuInstance> Instances(size_t gpu) const;

  const agent::AgentConfig& agent_config() const { return times_.agent; }
  // When something was last done to the cluster that nos has to live with: a fault, a reboot.
  std::optional<Time> LastDisturbance() const;

  // Power off and on: instances are gone, kubelet and agent start anew.
  void Reboot();
  // What asks this GPU for anything gets no answer, until it is restored or the node reboots.
  void LoseGpu(int gpu);
  void RestoreGpu(int gpu);
  // Since when, by GPU.
  const std::map<int, Time>& lost_gpus() const { return lost_gpus_; }
  // The GPU's MPS daemon has died, and another one serves. REQUIRES: a node with shares.
  void LoseDaemon(int gpu);
  void RestoreDaemon(int gpu);
  // Whether programs can use the GPU's shares now.
  bool ServesShares(int gpu) const {
    return !lost_gpus_.contains(gpu) && !lost_daemons_.contains(gpu);
  }
  // The next device operations of this kind fail.
  void FailNext(device::SimAttempt::Kind kind, int count);

 private:
  Machine(const NodeSpec& spec, const Environment& env, const MachineTimes& times);
  Status PlaceInstances(const NodeSpec& spec);
  void MakeAgent(bool shares);
  void MakeShares();
  bool IsShared(size_t gpu) const;
  bool IsPlain(size_t gpu) const;
  const gpu::Model* CutModel(size_t gpu) const;
  const gpu::Model* SharesOf(size_t gpu) const;
  std::vector<device::GpuInstance> MigInstances(size_t gpu) const;
  void AddHeld(size_t gpu, std::vector<device::GpuInstance>& instances) const;
  bool IsBusy(const std::string& uuid) const;
  device::SimHooks Hooks();
  device::SimFault DrawFault(const device::SimAttempt& attempt);
  void OnDestroy(const device::GpuInstance& instance);
  void OnReset(const std::string& uuid);
  void OnWithdrawal(const kubelet::OfferedDevice& device);
  // What the API server holds of this node now; nothing of a deleted one.
  ApiTruth TruthNow() const;
  void Note(std::vector<std::string> problems);

  std::string name_;
  Environment env_;
  MachineTimes times_;
  Life kubelet_life_, agent_life_;
  FaultyTransport kubelet_transport_, agent_transport_;
  std::vector<const gpu::Model*> models_;
  std::unique_ptr<VirtualNode> kubelet_;
  std::unique_ptr<device::SimGpus> gpus_;
  std::unique_ptr<WatchedParts> parts_;      // of the last agent; null before the first
  std::unique_ptr<WatchedShares> shares_;    // the same
  std::unique_ptr<WatchedPlain> plain_;      // the same
  std::vector<std::string> initial_shares_;  // ids; empty once an agent has them
  device::HealthBoard health_;
  std::unique_ptr<FaultyKubelet> sockets_;
  std::unique_ptr<Process> agent_;
  int fail_creates_ = 0, fail_destroys_ = 0, fail_resets_ = 0;
  std::map<int, Time> lost_gpus_;
  std::set<int> lost_daemons_;
  std::optional<Time> disturbed_;  // by a reboot, or a GPU or daemon that went or came back
};

}  // namespace nos::sim
