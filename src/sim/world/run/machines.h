// The machines of a virtual cluster: they join, leave and return, and have the spontaneous faults
// of Environment::faults (reboots, temporary loss of GPUs and MPS daemons).
//
//   Machines machines(env, view, times, std::nullopt, on_lost);
//   Status added = machines.Add({.name = "gpu-1", .gpus = {{"A100-40GB"}}});
//   machines.Find("gpu-1")->Reboot();
//
// One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "sim/world/model/cluster_view.h"
#include "sim/world/node/machine.h"

namespace nos::sim {

class Machines {
 public:
  using ByName = std::map<std::string, std::unique_ptr<Machine>, std::less<>>;

  // The references must outlive the object, which adds a handler to `view`. `nodes_return`: time
  // from a node's deletion to its return; without it, `on_lost` is called with the node's name.
  Machines(const Environment& env, ClusterView& view, MachineTimes times,
           std::optional<Duration> nodes_return, std::function<void(const std::string&)> on_lost);
  Machines(const Machines&) = delete;
  Machines& operator=(const Machines&) = delete;

  // Error: kInvalid, kAlreadyExists.
  Status Add(const NodeSpec& spec);
  // Null if there is none.
  Machine* Find(std::string_view name) const;
  const ByName& all() const { return machines_; }
  // A machine has, or had, a driver of Dynamic Resource Allocation.
  bool serve_devices() const { return serve_devices_; }

  // Removes the node with its pods, without a return.
  void RemoveForGood(const std::string& node);
  // Drops the machines whose nodes were deleted. Pointers to these end here, and nowhere else.
  void DropRemoved();

 private:
  // A recurring fault of one GPU of a node.
  struct Outage {
    double per_hour;
    Duration longest;
    void (Machine::*begin)(int gpu);
    void (Machine::*end)(int gpu);
  };

  void OnDeletion(const std::string& name);
  void RemoveSlices(const std::string& node);
  void ScheduleReboots(const std::string& node);
  void ScheduleOutages(const std::string& node, const Outage& outage);

  Environment env_;
  kube::Client client_;
  MachineTimes times_;
  std::optional<Duration> nodes_return_;
  std::function<void(const std::string&)> on_lost_;
  ByName machines_;
  std::map<std::string, NodeSpec, std::less<>> specs_;  // of all nodes that ever existed
  bool serve_devices_ = false;
};

}  // namespace nos::sim
