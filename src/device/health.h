// Health conditions of a node's GPUs; a condition stays until it is cleared.
//
//   GpuHealth board;
//   board.SetListener([&] { runner.Wake(); });
//   for (const HealthCondition& condition : board.Conditions()) ...
//
// Thread-safe: the driver's events arrive on a thread of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace nos::device {

struct HealthCondition {
  enum class Kind {
    kXid,          // the driver reported an error that makes the GPU or instance unfit for work
    kMemoryError,  // an uncorrectable (double bit) error of memory
    kLost,         // the GPU does not answer; cleared when it answers again
    kUnwatched,    // its errors are not monitored; the GPU itself may be fine
    kMps,          // in MPS mode without a control daemon (device/sharing/mps_daemon.h)
    kHangs,        // a call to the driver for it has not returned in time (device/bounded_gpus.h)
    kDriverHangs,  // a call that concerns no single GPU has not; `gpu` is kNoGpu
  };
  static constexpr int kNoGpu = -1;
  Kind kind = Kind::kXid;
  int gpu = 0;  // GpuInfo::index
  // The driver's GpuInstance::id (device/mig_parts.h); empty: the whole GPU.
  std::optional<uint32_t> instance{};
  uint64_t xid = 0;       // kXid
  std::string message{};  // for operators: the problem and what to do

  // "Xid79", "MemoryError", "GpuLost", "HealthNotWatched", "MpsNotServed", "GpuHangs",
  // "DriverHangs": for conditions and metrics.
  std::string Reason() const;
  // True if its devices must not be allocated any more.
  bool Disables() const { return kind != Kind::kUnwatched && kind != Kind::kDriverHangs; }
  friend bool operator==(const HealthCondition&, const HealthCondition&) = default;
};

class GpuHealth {
 public:
  // Called after every change, on the thread that made it, without a lock held. Set it before other
  // threads use the board.
  void SetListener(std::function<void()> listener) { listener_ = std::move(listener); }

  // Replaces the condition of the same kind, GPU, instance and Xid.
  void Add(HealthCondition condition);
  void Clear(int gpu, HealthCondition::Kind kind);
  // Clears it for one instance only, or (empty) for the GPU as a whole only.
  void ClearOne(int gpu, std::optional<uint32_t> instance, HealthCondition::Kind kind);
  // Clears everything of a destroyed instance (a new one may get its id and UUID).
  void ClearInstance(int gpu, uint32_t instance);
  // Call this after the GPU was reset or repaired.
  void ClearGpu(int gpu);

  // Sorted by GPU, instance, kind and Xid.
  std::vector<HealthCondition> Conditions() const;
  // True if devices of this instance may be allocated.
  bool Usable(int gpu, uint32_t instance) const;

 private:
  template <typename Predicate>
  void EraseIf(const Predicate& predicate);

  std::function<void()> listener_;
  mutable std::mutex mutex_;
  std::vector<HealthCondition> conditions_;  // guarded by mutex_; sorted
};

}  // namespace nos::device
