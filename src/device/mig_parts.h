// MIG instances that several pods share by MPS, as instances of a Backend: each of their equal
// parts in the place of the driver's instance. The decorated backend is the driver's.
//
//   MigParts gpus(nvml, catalogue, {{"3g.40gb", 4}});
//   gpus.GiveWhole(true);
//   gpus.Adopt(ids_that_pods_hold);
//   gpus.Create(0, "3g.40gb.mps4", 5);  // uuid "MIG-...::mps4::1", of the 3g.40gb at 4
//
// The driver knows nothing of a part: it is a limit that clients of the instance's MPS server are
// told. So which instances are divided, and which parts there are, is a list in memory. After a
// restart what pods hold is known again from the ids that the kubelet tells; an instance of which
// nobody holds a part counts as whole. Parts are there only where GPUs are each used in their own
// way (Backend::GiveWhole); elsewhere a divided instance is listed as whole, and whoever lists it
// has to know from the ids that it is held (MigOf).
//
// A part's start is the instance's plus its number, its id the instance's with the number in the
// upper byte (DriverIdOf). Incomplete instances are never divided. Thread-safe when the decorated
// backend is.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"

namespace nos::device {

struct MigPart {
  std::string mig_uuid;  // "MIG-..."
  int count = 0;         // into how many parts the instance is divided, 2 to gpu::kMostParts
  int number = 0;        // from 0
  friend auto operator<=>(const MigPart&, const MigPart&) = default;
};
// "MIG-...::mps4::1", at most 63 bytes.
std::string MigPartId(const MigPart& part);
// Nothing when it is none's id, however close: one has one spelling.
std::optional<MigPart> ParseMigPartId(std::string_view id);
// Whether it may be part of a path and of an environment. Drivers before R470 had others.
bool IsMigUuid(std::string_view text);
// The driver's instance that the device is, or is a part of: its UUID. Others as they are.
std::string MigOf(const std::string& device_id);
// GpuInstance::id of the driver's instance in which this one lies; its own if it is the driver's.
uint32_t DriverIdOf(uint32_t instance_id);

class MigParts : public Backend {
 public:
  // `backend` and `catalogue` must outlive this. `parts`: those that there may be.
  MigParts(Backend& backend, const gpu::Catalogue& catalogue, std::vector<gpu::InstancePart> parts)
      : backend_(backend), catalogue_(catalogue), parts_(std::move(parts)) {}

  void GiveWhole(bool give) override;
  // What a pod holds is the truth, unless it contradicts itself: then nothing is made of it.
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override;
  Result<std::vector<GpuInfo>> ListGpus() override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  // Of a part: makes the driver's instance if there is none. kExhausted also where it is there and
  // not divided so: who wants it divided destroys it first. kUnimplemented: the driver's UUIDs are
  // such that no MPS daemon can be told of the instance.
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  // With the last part goes the instance; while the driver does not let it, the part is there.
  // kUnavailable also for a divided instance as such.
  Status Destroy(int gpu, uint32_t instance_id) override;
  Status EnableMig(int gpu) override { return backend_.EnableMig(gpu); }
  Status DisableMig(int gpu) override { return backend_.DisableMig(gpu); }
  Status ResetGpu(int gpu) override { return backend_.ResetGpu(gpu); }
  Status SetComputeMode(int gpu, ComputeMode mode) override {
    return backend_.SetComputeMode(gpu, mode);
  }
  Status EnableMps(int gpu) override { return backend_.EnableMps(gpu); }
  Status DisableMps(int gpu) override { return backend_.DisableMps(gpu); }
  Readings MeasureGpu(int gpu) override { return backend_.MeasureGpu(gpu); }
  // Nothing is measured of a part, and of a divided instance as a whole nobody asks.
  Readings MeasureInstance(const GpuInstance& instance) override;

 private:
  struct Divided {
    std::string gpu;  // its UUID: indexes may change
    int count = 0;
    std::set<int> numbers;  // of the parts that there are: one at least
  };
  using Instances = std::vector<GpuInstance>;

  std::vector<GpuInstance> PartsOf(const GpuInstance& instance, const Divided& divided) const;
  GpuInstance ToPart(const GpuInstance& instance, int count, int number) const;
  bool MayBe(const GpuInstance& instance, int count) const;
  const GpuInstance* FindForAdoption(const std::string& uuid, std::map<int, Instances>& listed);
  std::string AdoptOne(const MigPart& part, std::span<const std::string> all,
                       std::map<int, Instances>& listed);
  std::optional<uint8_t> InstanceStart(int gpu, const gpu::InstancePart& part, uint8_t start) const;
  Result<GpuInstance> CreatePart(int gpu, const gpu::InstancePart& part, uint8_t start);
  Status DestroyPart(const GpuInstance& instance, int number);

  Backend& backend_;
  const gpu::Catalogue& catalogue_;
  const std::vector<gpu::InstancePart> parts_;
  std::mutex mutex_;  // guards the rest
  bool gives_ = false;
  std::map<int, GpuInfo> infos_;            // as last listed
  std::map<std::string, Divided> divided_;  // by UUID of the driver's instance
};

}  // namespace nos::device
