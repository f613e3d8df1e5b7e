// The GPUs of one node behind a driver whose calls may never return: a GPU has fallen off the bus,
// or the driver waits for itself in the kernel.
//
//   BoundedGpus gpus(std::make_shared<NvmlGpus>(...), health);
//   gpus.ListGpus();   // at the latest after BoundedCallOptions::read; the other GPUs are read
//   gpus.Hanging();    // "GPU 0 does not answer: ..."
//
// Each GPU has a thread, which makes all calls that concern it (device/bounded/call_thread.h), and
// the driver as a whole has one. While a call for a GPU is overdue, the GPU is listed with
// GpuInfo::problem, has the health condition kHangs, and every further call for it fails at once
// with kUnavailable: nothing is queued. When the call returns, its answer is dropped, the condition
// ends, and the next call reads the GPU anew. All other GPUs go on. If the number of GPUs cannot be
// read in time, the last one counts, with the condition kDriverHangs.
//
// A change that is overdue may still take effect, now or when it returns: callers must read the GPU
// before they decide about it again, as after every error of a Backend.
//
// Thread-safe, unlike other backends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "device/backend.h"
#include "device/backend/last_known.h"
#include "device/bounded/call_thread.h"
#include "device/health.h"

namespace nos::device {

// The driver's access to one GPU. All calls are made by the GPU's thread.
class GpuAccess {
 public:
  virtual ~GpuAccess() = default;
  // Its ListGpus lists this GPU only.
  virtual Backend& backend() = 0;
  // While it rests, it keeps nothing of the driver open: another GPU is being reset. A call of
  // backend() may open the driver again; only Rest(false) restores all, such as event watches.
  virtual void Rest(bool rest) = 0;
};

class GpuDriver {
 public:
  virtual ~GpuDriver() = default;
  // The number of GPUs. Keeps nothing open. Called by the driver's thread. Error: kUnavailable
  // (driver not loaded).
  virtual Result<int> Count() = 0;
  // Must not call the driver. From any thread.
  virtual std::unique_ptr<GpuAccess> Open(int gpu) = 0;
};

struct BoundedCallOptions {
  enum class Kind { kRead, kChange };
  // Limit of one call; `gpu` is HealthCondition::kNoGpu for the driver as a whole. Empty: LimitOf.
  std::function<Duration(int gpu, Kind kind)> limit{};
  // Called after each change of Hanging(), on any thread. May be empty.
  std::function<void()> changed{};
  // Called by the destructor if a thread is left behind in the driver: what the driver uses must
  // not be destroyed then. May be empty.
  std::function<void()> left_behind{};
};

// 30 s for reading: the driver answers in milliseconds, and in seconds while it initialises a GPU.
// Two minutes for changes: nvidia-smi has 90 s for a reset (GpuResetOptions), and the longest other
// change that was measured, switching MIG mode on, takes 6.5 s (device/sim_gpus.h). Both are below
// the time after which a loop counts as dead.
Duration LimitOf(BoundedCallOptions::Kind kind);

class BoundedGpus final : public Backend {
 public:
  using Options = BoundedCallOptions;
  // `health` must outlive this.
  BoundedGpus(std::shared_ptr<GpuDriver> driver, GpuHealth& health, Options options = {});
  // Waits some seconds for calls that are not overdue.
  ~BoundedGpus() override;
  BoundedGpus(const BoundedGpus&) = delete;
  BoundedGpus& operator=(const BoundedGpus&) = delete;

  // Reads all GPUs at the same time. Further error: kDeadline, if the driver has never answered.
  Result<std::vector<GpuInfo>> ListGpus() override;
  // Further error of all calls for one GPU: kUnavailable, if it or an earlier one is overdue.
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  Status Destroy(int gpu, uint32_t instance_id) override;
  Status EnableMig(int gpu) override;
  Status DisableMig(int gpu) override;
  // Other calls wait meanwhile. Further error: kUnavailable while any call is overdue, because its
  // thread keeps the driver open.
  Status ResetGpu(int gpu) override;
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  Readings MeasureGpu(int gpu) override;
  Readings MeasureInstance(const GpuInstance& instance) override;

  // A sentence for each GPU that does not answer, and for the driver.
  std::vector<std::string> Hanging() const;
  // True if no GPU answers, or the driver does not.
  bool AllHang() const;
  // The process ends: from now on no call is waited for longer than some seconds.
  void Hurry();

 private:
  using Kind = BoundedCallOptions::Kind;
  struct Slot {
    Slot(std::shared_ptr<GpuAccess> with, std::function<void()> changed)
        : access(std::move(with)), thread(std::move(changed)) {}
    std::shared_ptr<GpuAccess> access;
    CallThread thread;
  };

  Slot& SlotOf(int gpu);
  std::vector<std::pair<int, Slot*>> Slots() const;
  Duration Limit(int gpu, Kind kind) const;
  Result<int> CountGpus();
  template <typename R, typename F>
  R OnGpu(int gpu, Kind kind, std::string name, const F& call);
  Status RestOthers(int gpu, bool rest);
  void Note(int gpu);
  void NoteDriver();

  const std::shared_ptr<GpuDriver> driver_;
  GpuHealth& health_;
  const Options options_;
  std::shared_mutex gate_;    // exclusive during a reset
  mutable std::mutex mutex_;  // guards the following
  std::map<int, std::unique_ptr<Slot>> slots_;
  LastKnownGpus known_;
  std::optional<int> count_;
  bool hurry_ = false;
  std::mutex noting_;         // one writer of health at a time
  CallThread driver_thread_;  // last: uses the others
};

}  // namespace nos::device
