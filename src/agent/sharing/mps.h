// GPUs that are shared by MPS: which ones are, which ones were by an earlier agent, and the daemons
// that serve them.
//
//   MpsSharing mps(/*enabled=*/true, &daemons, &health);
//   for (device::Target& t : mps.TargetsToLeave(round)) round.targets.push_back(t);
//   mps.KeepDaemons(round);        // after targets, keep and unwanted are known
//   mps.WithholdUnserved(round);
//   progress.next = mps.NextSwitch(round, delayed, deferred);
//
// A share has a memory limit only while a daemon serves its GPU or divided MIG instance. Therefore
// a daemon runs as long as a share exists, a device without a daemon is unhealthy, and the last
// share is destroyed only after its daemon has stopped. A restarted agent does not know what the
// earlier one shared: it takes a GPU over if pods hold shares of it or a daemon runs, and changes
// nothing there before. Without daemons another component serves the GPUs. Owned by one thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/node/observed_state.h"
#include "device/actuator.h"
#include "device/health.h"
#include "device/mps_control.h"

namespace nos::agent {

class MpsSharing {
 public:
  using Deferred = std::function<bool(const device::Operation&)>;

  // `enabled`: the backend can share GPUs by MPS. `daemons`, `health`: null if not used; otherwise
  // they outlive this.
  MpsSharing(bool enabled, device::MpsControl* daemons, const device::GpuHealth* health)
      : enabled_(enabled), daemons_(daemons), health_(health) {}

  // Empty targets for GPUs whose devices are to be destroyed as they become free, whatever the spec
  // says: their sharing mode must change, or no plan can include their devices, or they have more
  // shares than allowed.
  std::vector<device::Target> TargetsToLeave(const ObservedState& round) const;
  // Indices of GPUs that an earlier agent shared and this one does not share yet, so that their
  // observed state is wrong. Nodes that are not hybrid neither take over GPUs in MIG mode nor share
  // them.
  std::set<int> NotTakenOver(const ObservedState& round) const;
  // The next operation that shares a GPU as the node's mode requests, or ends that. `delayed`: GPUs
  // whose mode change waits, and is not requested again each time.
  std::optional<device::Operation> NextSwitch(
      const ObservedState& round, const std::function<bool(const device::GpuInfo&)>& delayed,
      const Deferred& deferred) const;
  // True for an operation that puts back the compute mode of a GPU that an earlier agent shared,
  // and nothing else: this agent shares none.
  bool PutsBack(const device::Operation& operation) const;

  // Keeps one daemon for each shared GPU until the GPU is no longer to be shared and has no shares
  // left. Daemons of an earlier agent continue until this agent has taken over their GPUs.
  void KeepDaemons(const ObservedState& round);
  // Marks parts of instances without a serving daemon as unhealthy, so that no new pod gets them.
  void WithholdUnserved(ObservedState& round) const;
  // If the operation would destroy the last part of a served instance, asks the instance's daemon
  // to stop and returns true. REQUIRES: the kubelet cannot give the part to a pod any more.
  bool MustEndDaemon(const device::Operation& operation, const ObservedState& round);
  // True if the daemon of this GPU or instance still runs.
  bool IsServed(const std::string& uuid) const;
  // True if the GPU is only unhealthy because its daemon is starting for the first time, was just
  // taken over, or is stopping, or if it has recovered meanwhile. This is not reported as a fault.
  bool IsBeingServed(int gpu) const;

 private:
  std::set<std::string> WereShared(const ObservedState& round) const;
  std::optional<device::Operation> NextPutBack(const ObservedState& round,
                                               const Deferred& deferred) const;
  void AddDividedInstances(const ObservedState& round, std::vector<device::MpsGpu>& served,
                           std::set<std::string>& undecided);

  const bool enabled_;
  device::MpsControl* const daemons_;
  const device::GpuHealth* const health_;
  // UUIDs of divided instances whose last part is about to be destroyed: their daemons are stopped
  // first.
  std::set<std::string> ending_;
  std::set<std::string> leaving_;  // UUIDs of GPUs whose daemons were asked to stop
};

}  // namespace nos::agent
