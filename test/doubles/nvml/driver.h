// Runs one call into the doubled driver: applies latency and faults, reads and changes the state
// under the file's lock.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "rules.h"
#include "state.h"

namespace nos::nvml_double {

// Handles encode the named object as a number: a stale one refers to nothing.
enum class Handle : unsigned { kGpu = 1, kMigDevice, kInstance, kCompute };

struct Name {
  int gpu = -1;
  unsigned instance = 0, compute = 0;
};

void* ToHandle(Handle kind, const Name& name);
// gpu is -1 if the handle is of another kind.
Name FromHandle(Handle kind, const void* handle);

// The context of a call. `fault` is null, or the fault that falsifies its answer.
struct Context {
  State& state;
  const Fault* fault;
  Gpu& gpu(int index) const { return state.gpus.at(static_cast<size_t>(index)); }
};

using Body = std::function<nvml::Return(const Context&)>;

// Runs `body` as the function `call`. `gpu`: its GPU, or -1; if the GPU is lost, the body is not
// run.
nvml::Return Run(std::string_view call, int gpu, const Body& body);
// Also finds the instance of the handle: INVALID_ARGUMENT if it does not exist.
nvml::Return RunOnInstance(
    std::string_view call, const Name& name,
    const std::function<nvml::Return(const Context&, Gpu&, Instance&)>& body);

// Also finds the GPU of the handle: NOT_SUPPORTED if its model has no MIG.
nvml::Return OnModel(std::string_view call, nvml::Device device,
                     const std::function<nvml::Return(const Context&, Gpu&)>& body);

// Appends the line to "<state file>.journal" if that file exists (device_journal.h).
void Journal(const std::string& line);

// nvmlInit (1) and nvmlShutdown (-1) of this process.
nvml::Return Initialise(int change);

// Waits until `poll` returns something other than TIMEOUT; polls whenever the file is replaced.
nvml::Return WaitForChange(std::chrono::milliseconds timeout,
                           const std::function<nvml::Return()>& poll);

// The value with this name, or `otherwise` if the file has none.
int64_t ValueOf(const Values& values, const std::string& name, int64_t otherwise);

// Writes a string like the driver, or fills the buffer without a terminator if the fault says so.
nvml::Return PutString(const Context& context, const std::string& text, char* buffer,
                       unsigned size);
// The length of a list, or a count, which the fault may falsify.
unsigned PutCount(const Context& context, size_t count);

}  // namespace nos::nvml_double
