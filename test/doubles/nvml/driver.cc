#include "driver.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "../device_journal.h"
#include "state_file.h"

namespace nos::nvml_double {
namespace {

std::atomic<int> initialised{0};

std::string StatePath() {
  const char* path = std::getenv("NOS_NVML_DOUBLE_STATE");  // NOLINT(concurrency-mt-unsafe)
  return path == nullptr ? "" : path;
}

// The next fault for this call; decrements its count.
std::optional<Fault> Strike(State& state, std::string_view call, int gpu) {
  for (Fault& fault : state.faults) {
    if (fault.call != call || fault.times == 0 || (fault.gpu && *fault.gpu != gpu)) continue;
    if (fault.after > 0) {
      --fault.after;
      return std::nullopt;
    }
    --fault.times;
    return fault;
  }
  return std::nullopt;
}

bool IsHostile(const Fault& fault) {
  return fault.count || fault.start || fault.size || fault.unterminated;
}

nvml::Return Answer(State& state, int gpu, const std::optional<Fault>& fault, const Body& body) {
  const Context context{state, fault ? &*fault : nullptr};
  if (gpu >= static_cast<int>(state.gpus.size())) return nvml::kInvalidArgument;
  if (gpu >= 0 && context.gpu(gpu).lost) return nvml::kGpuIsLost;
  if (!fault || IsHostile(*fault)) return body(context);
  if (fault->effect == Fault::Effect::kLie) return nvml::kSuccess;
  if (fault->effect == Fault::Effect::kLate) (void)body(context);
  return static_cast<nvml::Return>(fault->error);
}

Hang* HangOf(State& state, int gpu) {
  if (gpu < 0) return &state.hang;
  return gpu < static_cast<int>(state.gpus.size()) ? &state.gpus[static_cast<size_t>(gpu)].hang
                                                   : nullptr;
}

bool Hangs(State& state, std::string_view call, int gpu) {
  const Hang* hang = HangOf(state, gpu);
  return hang != nullptr && std::ranges::any_of(hang->calls, [&](const std::string& listed) {
           return listed == "*" || listed == call;
         });
}

// Changes the number of calls that hang. An unreadable file hangs none.
void CountHanging(int gpu, int change) {
  const StateFile file(StatePath());
  const Result<Json> json = file.Read();
  if (!json.ok()) return;
  Result<State> state = ReadState(*json);
  if (!state.ok()) return;
  if (Hang* hang = HangOf(*state, gpu)) hang->hanging += change;
  (void)file.Write(WriteState(*state));
}

// Returns when the file does not say any more that the call hangs.
void HangUntilReleased(std::string_view call, int gpu) {
  CountHanging(gpu, +1);
  const auto released = [&] {
    const Result<Json> json = StateFile(StatePath()).Read();
    Result<State> state = json.ok() ? ReadState(*json) : json.status();
    return !state.ok() || !Hangs(*state, call, gpu);
  };
  while (!WaitForFile(StatePath(), std::chrono::hours(1), released)) {
  }
  CountHanging(gpu, -1);
}

}  // namespace

void* ToHandle(Handle kind, const Name& name) {
  const uintptr_t bits = static_cast<uintptr_t>(kind) << 28 |
                         static_cast<uintptr_t>(name.gpu) << 20 |
                         static_cast<uintptr_t>(name.instance & 0x3FF) << 10 |
                         static_cast<uintptr_t>(name.compute & 0x3FF);
  return reinterpret_cast<void*>(bits);  // NOLINT(performance-no-int-to-ptr)
}

Name FromHandle(Handle kind, const void* handle) {
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  if (bits >> 28 != static_cast<uintptr_t>(kind)) return {};
  return {static_cast<int>(bits >> 20 & 0xFF), static_cast<unsigned>(bits >> 10 & 0x3FF),
          static_cast<unsigned>(bits & 0x3FF)};
}

nvml::Return Run(std::string_view call, int gpu, const Body& body) {
  if (initialised == 0 && call != "nvmlInit_v2") return nvml::kUninitialized;
  int64_t latency = 0;
  std::optional<Fault> fault;
  nvml::Return answer = nvml::kUnknown;
  bool hangs = false;
  {
    const StateFile file(StatePath());
    const Result<Json> before = file.Read();
    if (!before.ok()) return nvml::kDriverNotLoaded;
    Result<State> state = ReadState(*before);
    if (!state.ok()) {
      std::fprintf(stderr, "NVML double: %s: %s\n", StatePath().c_str(),
                   state.status().message().c_str());
      return nvml::kUnknown;
    }
    hangs = Hangs(*state, call, gpu);
    if (const auto slow = state->latency_ms.find(std::string(call));
        slow != state->latency_ms.end()) {
      latency = slow->second;
    }
    if (!hangs) fault = Strike(*state, call, gpu);
    const bool dies = fault && fault->effect == Fault::Effect::kExit;
    if (!dies && !hangs) answer = Answer(*state, gpu, fault, body);
    const Json after = WriteState(*state);
    // Compared as texts, because a parsed number and a newly written one differ in kind.
    const bool changed = WriteJson(after) != WriteJson(*before);
    if (changed && !file.Write(after).ok()) return nvml::kUnknown;
    if (dies) _exit(137);
  }
  if (hangs) {
    HangUntilReleased(call, gpu);
    return Run(call, gpu, body);
  }
  if (latency > 0) std::this_thread::sleep_for(std::chrono::milliseconds(latency));
  return answer;
}

void Journal(const std::string& line) { doubles::AppendToJournal(StatePath() + ".journal", line); }

nvml::Return RunOnInstance(
    std::string_view call, const Name& name,
    const std::function<nvml::Return(const Context&, Gpu&, Instance&)>& body) {
  if (name.gpu < 0) return nvml::kInvalidArgument;
  return Run(call, name.gpu, [&](const Context& context) {
    Gpu& gpu = context.gpu(name.gpu);
    for (Instance& instance : gpu.instances) {
      if (instance.id == name.instance) return body(context, gpu, instance);
    }
    return nvml::kInvalidArgument;
  });
}

nvml::Return OnModel(std::string_view call, nvml::Device device,
                     const std::function<nvml::Return(const Context&, Gpu&)>& body) {
  const Name name = FromHandle(Handle::kGpu, device);
  if (name.gpu < 0) return nvml::kInvalidArgument;
  return Run(call, name.gpu, [&](const Context& context) {
    Gpu& gpu = context.gpu(name.gpu);
    return gpu.model == nullptr ? nvml::kNotSupported : body(context, gpu);
  });
}

namespace {

std::mutex sessions_mutex;  // guards sessions_lock
int sessions_lock = -1;     // held while this process has a session

// While a process has a session it keeps the GPUs open; the kernel releases the lock with the
// process.
void HoldGpus(bool hold) {
  if (hold == (sessions_lock >= 0)) return;
  if (!hold) {
    close(std::exchange(sessions_lock, -1));
    return;
  }
  sessions_lock = open(SessionsPath(StatePath()).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (sessions_lock >= 0) flock(sessions_lock, LOCK_SH);
}

}  // namespace

nvml::Return Initialise(int change) {
  const std::scoped_lock lock(sessions_mutex);
  if (change < 0) {
    if (initialised == 0) return nvml::kUninitialized;
    --initialised;
    HoldGpus(initialised > 0);
    return nvml::kSuccess;
  }
  const nvml::Return code = Run("nvmlInit_v2", -1, [](const Context&) { return nvml::kSuccess; });
  if (code == nvml::kSuccess) ++initialised;
  HoldGpus(initialised > 0);
  return code;
}

nvml::Return WaitForChange(std::chrono::milliseconds timeout,
                           const std::function<nvml::Return()>& poll_state) {
  nvml::Return code = nvml::kTimeout;
  WaitForFile(StatePath(), timeout, [&] {
    code = poll_state();
    return code != nvml::kTimeout;
  });
  return code;
}

int64_t ValueOf(const Values& values, const std::string& name, int64_t otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

nvml::Return PutString(const Context& context, const std::string& text, char* buffer,
                       unsigned size) {
  if (context.fault != nullptr && context.fault->unterminated) {
    std::memset(buffer, 0x1b, size);  // escape characters without a terminator
    return nvml::kSuccess;
  }
  if (text.size() >= size) return nvml::kInsufficientSize;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

unsigned PutCount(const Context& context, size_t count) {
  if (context.fault != nullptr && context.fault->count) {
    return static_cast<unsigned>(*context.fault->count);
  }
  return static_cast<unsigned>(count);
}

}  // namespace nos::nvml_double
