// Watches errors that the driver reports for its GPUs (XIDs, uncorrectable memory errors, GPUs that
// fall off the bus) and records them on a GpuHealth.
//
//   GpuHealth board;
//   NvmlEvents events(*library, board);
//   events.Start();
//
// One thread waits in nvmlEventSetWait, at most Options::wait at a time, so that it stops soon
// after a request. A condition is cleared when a lost GPU answers again or when the instance is
// destroyed (NvmlBackend). Other conditions need a restart of the agent after the GPU's reset,
// because NVML does not report resets.
//
// Start, the destructor and Suspended are for one owner thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "device/health.h"
#include "device/nvml/library.h"

namespace nos::device {

struct NvmlEventOptions {
  std::chrono::milliseconds wait{250};
  // Interval of checks whether GPUs still answer, and whether lost ones answer again.
  std::chrono::milliseconds probe{10'000};
  // Xids that are caused by a program and leave the GPU usable for others. Source: the list that
  // NVIDIA/k8s-device-plugin ignores (issue 1340: 13, 31, 43, 45, 68, 109), and 94, a contained
  // memory error, for which NVIDIA's Xid catalogue advises to restart the application.
  std::set<uint64_t> harmless_xids{13, 31, 43, 45, 68, 94, 109};
  // The only GPU to watch, by index; empty: all.
  std::optional<int> only{};
  // Called for every Xid, harmless ones too, on the watcher's thread. May be empty.
  std::function<void(int gpu, uint64_t xid, std::string message)> on_xid{};
};

class NvmlEvents {
 public:
  using Options = NvmlEventOptions;
  // Both must outlive this.
  NvmlEvents(const NvmlLibrary& library, GpuHealth& board, Options options = {});
  ~NvmlEvents();
  NvmlEvents(const NvmlEvents&) = delete;
  NvmlEvents& operator=(const NvmlEvents&) = delete;

  // Error: kUnimplemented if the driver has no events; then nothing is watched.
  Status Start();
  GpuHealth& board() { return board_; }

  // While it exists, the watcher holds neither GPUs nor a session with the driver. The constructor
  // waits for that, at most about Options::wait. Null: no effect.
  class Suspended {
   public:
    explicit Suspended(NvmlEvents* events);
    ~Suspended();
    Suspended(const Suspended&) = delete;
    Suspended& operator=(const Suspended&) = delete;

   private:
    NvmlEvents* events_;
  };

 private:
  struct Watched {
    int gpu;
    nvml::Device device;
    std::string uuid;
  };

  void Run();
  bool MayWork();
  void Pause(std::chrono::milliseconds time);
  void Release();
  Status Arm();
  void WatchGpu(int gpu);
  void WaitOnce();
  void Probe();
  void Deliver(const nvml::EventData& event);
  void MarkLost(int gpu, const Status& why);

  const NvmlLibrary& library_;
  GpuHealth& board_;
  const Options options_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;     // guarded by mutex_
  int suspended_ = 0;     // guarded by mutex_: number of Suspended that exist
  bool holding_ = false;  // guarded by mutex_: the thread has, or may open, a session
  std::thread thread_;

  // Used by the thread only.
  NvmlSession session_;
  nvml::EventSet set_ = nullptr;
  std::vector<Watched> watched_;
  std::set<int> lost_;
  std::chrono::steady_clock::time_point next_probe_{};
};

// The health condition for an event; empty for harmless Xids. Pure.
std::optional<HealthCondition> ToCondition(const nvml::EventData& event, int gpu,
                                           const std::set<uint64_t>& harmless_xids);

}  // namespace nos::device
