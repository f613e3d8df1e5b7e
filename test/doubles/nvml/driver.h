// One call into the doubled driver: takes its time, meets its faults, sees and changes the state
// under the file's lock.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "rules.h"
#include "state.h"

namespace nos::nvml_double {

// Handles say what they name, as numbers: a stale one names nothing that is there.
enum class Handle : unsigned { kGpu = 1, kMigDevice, kInstance, kCompute };

struct Name {
  int gpu = -1;
  unsigned instance = 0, compute = 0;
};

void* ToHandle(Handle kind, const Name& name);
// gpu is -1 when the handle is of another kind.
Name FromHandle(Handle kind, const void* handle);

// What a call works with. `fault` is null, or the fault that makes its answer hostile.
struct Context {
  State& state;
  const Fault* fault;
  Gpu& gpu(int index) const { return state.gpus.at(static_cast<size_t>(index)); }
};

using Body = std::function<nvml::Return(const Context&)>;

// Runs `body` as the function `call`. `gpu`: the one concerned, or -1; when it is lost the body
// does not run.
nvml::Return Run(std::string_view call, int gpu, const Body& body);
// Also finds the instance that the handle names: INVALID_ARGUMENT when it is gone.
nvml::Return RunOnInstance(
    std::string_view call, const Name& name,
    const std::function<nvml::Return(const Context&, Gpu&, Instance&)>& body);

// Also finds the GPU that the handle names: NOT_SUPPORTED when its model has no MIG.
nvml::Return OnModel(std::string_view call, nvml::Device device,
                     const std::function<nvml::Return(const Context&, Gpu&)>& body);

// nvmlInit and nvmlShutdown of this process.
nvml::Return Initialise(int change);

// Waits until `poll` answers something else than TIMEOUT, looking again whenever the file is
// replaced.
nvml::Return WaitForChange(std::chrono::milliseconds timeout,
                           const std::function<nvml::Return()>& poll);

// The value of this name, or another one where the file does not say.
int64_t ValueOf(const Values& values, const std::string& name, int64_t otherwise);

// Writes a string as the driver does, or fills the buffer without an end when the fault says so.
nvml::Return PutString(const Context& context, const std::string& text, char* buffer,
                       unsigned size);
// A list of handles or a number of things, which the fault may falsify.
unsigned PutCount(const Context& context, size_t count);

}  // namespace nos::nvml_double
