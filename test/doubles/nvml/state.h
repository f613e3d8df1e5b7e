// What the doubled driver of one node knows: GPUs, what they are cut into, and what shall go wrong.
// The file format is in README.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "codec/json.h"
#include "gpu/catalogue.h"

namespace nos::nvml_double {

// What is measured, by the names of README.md.
using Values = std::map<std::string, int64_t>;

struct Process {
  unsigned pid = 0;
  std::string name;
  std::optional<int64_t> memory_mib;
  unsigned instance = 0xFFFFFFFF;
};

struct ComputeInstance {
  unsigned id = 0, profile = 0, slices = 0;
  bool in_use = false;  // a process runs on it
};

struct Instance {
  unsigned id = 0;
  gpu::Placement placement;
  std::vector<ComputeInstance> compute;
  Values readings;
};

struct Gpu {
  const gpu::Model* model = nullptr;  // null: no MIG
  std::string product, uuid;
  unsigned pci_device_id = 0;
  int64_t memory_mib = 0;
  bool mig = true, mig_pending = true;
  unsigned compute_mode = 0;
  bool lost = false;
  bool in_use = false;          // a client keeps the GPU from changing its mode
  std::string no_reset;         // what nvidia-smi says of it instead of resetting it alone
  bool parent_handles = false;  // compute instances name their GPU and not their MIG device
  std::map<std::string, std::string> renames;  // catalogue's profile name -> this driver's
  std::vector<Instance> instances;
  Values readings;
  std::vector<Process> processes;
};

struct Fault {
  enum class Effect { kFail, kLate, kLie, kExit };
  std::string call;
  std::optional<int> gpu;
  Effect effect = Effect::kFail;
  unsigned error = 999;
  int after = 0, times = 1;             // calls let through first, calls struck then
  std::optional<uint64_t> count;        // what a list or a number becomes
  std::optional<uint64_t> start, size;  // of placements
  bool unterminated = false;            // strings fill their buffer
};

struct Event {
  int gpu = 0;
  uint64_t type = 0, data = 0;
  unsigned instance = 0xFFFFFFFF, compute = 0xFFFFFFFF;
};

struct State {
  std::string node, driver;
  bool root = true;                           // who calls may change modes
  std::map<std::string, int64_t> latency_ms;  // by function
  std::vector<Gpu> gpus;
  std::vector<Fault> faults;
  std::vector<Event> events;
};

// Error: kInvalid with the reason. A test's mistake, hence all or nothing.
Result<State> ReadState(const Json& json);
Json WriteState(const State& state);

}  // namespace nos::nvml_double
