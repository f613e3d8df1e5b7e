// MIG instances that several pods share by MPS, as instances of a Backend: each of the equal parts
// of an instance appears in place of the driver's instance. The decorated backend is the driver's.
//
//   MigParts gpus(nvml, catalogue, {{"3g.40gb", 4}});
//   gpus.GiveWhole(true);
//   gpus.Adopt(ids_that_pods_hold);
//   gpus.Create(0, "3g.40gb.mps4", 5);  // uuid "MIG-...::mps4::1", of the 3g.40gb at 4
//
// The driver does not know parts: a part is a memory limit for clients of the instance's MPS
// server. Divided instances and their parts are therefore a list in memory. After a restart,
// Adopt() restores the parts held by pods from the ids that the kubelet reports; an instance
// without held parts counts as whole. Parts exist only on nodes with a sharing mode per GPU
// (Backend::GiveWhole). On other nodes a divided instance is listed as whole, and the caller must
// derive from the ids (MigOf) that it is held.
//
// A part's start is the instance's start plus the part's number; its id is the instance's id with
// the number in the upper byte (DriverIdOf). Incomplete instances are never divided. Thread-safe if
// the decorated backend is.
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

#include "device/forwarding_backend.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"

namespace nos::device {

struct MigPart {
  std::string mig_uuid;  // "MIG-..."
  int count = 0;         // number of parts of the instance, 2 to gpu::kMaxParts
  int number = 0;        // from 0
  friend auto operator<=>(const MigPart&, const MigPart&) = default;
};
// "MIG-...::mps4::1", at most 63 bytes.
std::string MigPartId(const MigPart& part);
// Empty if it is not a part's id; only one spelling is accepted.
std::optional<MigPart> ParseMigPartId(std::string_view id);
// Checks that the UUID is safe in a path and in an environment. Drivers before R470 use another
// format.
bool IsMigUuid(std::string_view text);
// The UUID of the driver's instance that the device is, or is a part of. Other ids are unchanged.
std::string MigOf(const std::string& device_id);
// The driver's GpuInstance::id of the instance that contains this one; the id itself if it is the
// driver's.
uint32_t DriverIdOf(uint32_t instance_id);

class MigParts : public ForwardingBackend {
 public:
  // `backend` and `catalogue` must outlive this. `parts`: the allowed divisions.
  MigParts(Backend& backend, const gpu::Catalogue& catalogue, std::vector<gpu::InstancePart> parts)
      : ForwardingBackend(backend), catalogue_(catalogue), parts_(std::move(parts)) {}

  void GiveWhole(bool give) override;
  // A part held by a pod is restored unless its id contradicts others; then it is refused.
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override;
  Result<std::vector<GpuInfo>> ListGpus() override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  // For a part: creates the driver's instance if needed. kExhausted also if the instance exists
  // with another division; the caller must destroy it first. kUnimplemented: the driver's UUID
  // format does not allow an MPS daemon for the instance.
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  // Destroying the last part destroys the instance; if the driver refuses, the part stays.
  // kUnavailable also for a divided instance itself.
  Status Destroy(int gpu, uint32_t instance_id) override;
  // A part cannot be measured; a divided instance as a whole is never requested.
  Readings MeasureInstance(const GpuInstance& instance) override;

 private:
  struct Divided {
    std::string gpu;  // UUID, because indexes may change
    int count = 0;
    std::set<int> numbers;  // of the existing parts: at least one
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

  const gpu::Catalogue& catalogue_;
  const std::vector<gpu::InstancePart> parts_;
  std::mutex mutex_;  // guards the rest
  bool gives_ = false;
  std::map<int, GpuInfo> infos_;            // from the last ListGpus
  std::map<std::string, Divided> divided_;  // by UUID of the driver's instance
};

}  // namespace nos::device
