// The state of one node's doubled driver: GPUs, their instances, and faults to inject. README.md
// describes the file format.
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

// Readings, by the names in README.md.
using Values = std::map<std::string, int64_t>;

struct Process {
  unsigned pid = 0;
  std::string name;
  std::optional<int64_t> memory_mib;
  unsigned instance = 0xFFFFFFFF;
};

// Calls that do not return while their function is in the list.
struct Hang {
  std::vector<std::string> calls;  // "*": all
  int hanging = 0;                 // number of calls that are in it now
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
  bool in_use = false;          // a client blocks changes of the GPU's mode
  std::string no_reset;         // nvidia-smi's refusal to reset it alone
  bool parent_handles = false;  // compute instances report their GPU, not their MIG device
  std::map<std::string, std::string> renames;  // catalogue's profile name -> this driver's
  std::vector<Instance> instances;
  Values readings;
  std::vector<Process> processes;
  Hang hang;
};

struct Fault {
  enum class Effect { kFail, kLate, kLie, kExit };
  std::string call;
  std::optional<int> gpu;
  Effect effect = Effect::kFail;
  unsigned error = 999;
  int after = 0, times = 1;             // calls to let through first, calls to hit then
  std::optional<uint64_t> count;        // replaces a list's length or a count
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
  bool root = true;                           // the caller may change modes
  std::map<std::string, int64_t> latency_ms;  // by function
  std::vector<Gpu> gpus;
  std::vector<Fault> faults;
  std::vector<Event> events;
  Hang hang;  // of calls that concern no GPU
};

// Error: kInvalid with the reason. All or nothing, because an error is the test's mistake.
Result<State> ReadState(const Json& json);
Json WriteState(const State& state);

}  // namespace nos::nvml_double
