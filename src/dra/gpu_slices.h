// The ResourceSlices by which nos's own driver announces the GPUs of a node, and the writes that
// bring those of the API server there.
//
//   const std::vector<GpuOfDriver> gpus = ...;
//   const SliceWrites writes = PlanSlices(node, SliceSpecs(node, gpus, rules), existing);
//
// Devices never come and go with instances: each GPU announces itself and every placement that its
// model has, and counters exclude placements that overlap. A pool changes only with its GPUs and
// their health. Names and counters are as NVIDIA's driver publishes them with dynamic MIG. Pure.
//
// Shares are further devices beside a GPU or placement, which several claims may have at a time
// (allowMultipleAllocations). They use the counters of what is shared, once for all claims, so
// schedulers never give away a share of something that another claim has for itself. Claims request
// memory of an "mps" device, and one turn of a "time-slices" device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "dra/gpu_driver.h"
#include "gpu/catalogue.h"

namespace nos::dra {

// Conditions of an allocated device (status.devices of the claim). Schedulers bind the claim's pod
// when the instance exists, and allocate again when it cannot be created.
inline constexpr std::string_view kCreated = "nos.nebuly.com/Created";
inline constexpr std::string_view kCreationFailed = "nos.nebuly.com/CreationFailed";
// Taint of the devices of an unhealthy GPU; its value is a reason.
inline constexpr std::string_view kUnhealthyTaint = "nos.nebuly.com/unhealthy";

// The amounts of a GPU and of its placements that claims may share.
struct SharesOfGpu {
  int64_t memory_gib = 0;  // for clients of MPS, of the GPU as a whole; 0: no shares by MPS
  int max_clients = 0;     // of MPS, of a GPU or an instance
  int time_slices = 0;     // claims that may take turns; 0, 1: none
  friend bool operator==(const SharesOfGpu&, const SharesOfGpu&) = default;
};

struct GpuOfDriver {
  int index = 0;  // GpuInfo::index
  std::string uuid, product;
  const gpu::Model* model = nullptr;  // null: unknown, so it is announced as a whole only
  int64_t memory_mib = 0;             // of the GPU; 0: unknown
  // A GPU whose MIG mode changes only with a reset offers either itself or placements.
  bool whole = true, placements = true;
  std::string pci_bus_id, pcie_root;  // "0000:17:00.0", "pci0000:16"; "": unknown
  std::string fault;                  // reason of kUnhealthyTaint, a label's value; "": healthy
  std::map<std::string, std::string> device_faults{};  // the same of single devices, by name
  SharesOfGpu shares{};
};

struct NodeOfDriver {
  std::string name, uid;
  std::string driver_version;  // "550.54.15"; "": unknown
  // Its kubelet gives pods the devices of claims for extended resources, which their status names.
  bool extended_resources = false;
};

// The form of slices that the API server accepts.
struct SliceRules {
  bool binding_conditions = true;
  // Kubernetes 1.34 wants counters in the slice of the devices, later versions in one of their own.
  bool combined = false;
  bool shares = true;  // devices may be allocated several times
};

// A device that may be allocated: a GPU or a placement on it, or shares of one of these.
struct DriverDevice {
  std::string name;
  int gpu = 0;                              // GpuOfDriver::index
  std::optional<gpu::Placement> placement;  // absent: the whole GPU
  DeviceSharing sharing = DeviceSharing::kNone;
};

// Names are labels of DNS, unique on the node.
std::string DeviceNameOf(int gpu);
std::string DeviceNameOf(int gpu, const gpu::Profile& profile, uint8_t start);
// All devices of a GPU, in the order of its slice: first those that are not shared.
std::vector<DriverDevice> DevicesOf(const GpuOfDriver& gpu);
// Memory in MiB of the device; of one that MPS shares, what all its claims can have together. 0:
// not known, or there can be no shares by MPS.
int64_t MemoryOf(const GpuOfDriver& gpu, const DriverDevice& device);

// The attributes that a slice has for the device.
JsonObject AttributesOf(const GpuOfDriver& gpu, const NodeOfDriver& node,
                        const DriverDevice& device);

// The specs of the slices, without generation. At most 8 counter sets and 64 devices each.
std::vector<JsonObject> SliceSpecs(const NodeOfDriver& node, const std::vector<GpuOfDriver>& gpus,
                                   const SliceRules& rules);

// The writes that turn the existing slices into those with these specs. Slices of other drivers and
// nodes are left alone. If nothing differs there are no writes; otherwise all slices are written
// with the next generation, because consumers use a pool only if it is complete.
struct SliceWrites {
  std::vector<Json> create, update;  // ResourceSlices; updates have a resourceVersion
  std::vector<std::string> remove;   // names
  bool empty() const { return create.empty() && update.empty() && remove.empty(); }
};
SliceWrites PlanSlices(const NodeOfDriver& node, const std::vector<JsonObject>& specs,
                       const std::vector<Json>& existing);

// Fields that the API server left out of a slice, because their feature is switched off there.
struct DroppedFields {
  bool counters = false, binding_conditions = false, shares = false;
};
DroppedFields DroppedBetween(const Json& sent, const Json& stored);

}  // namespace nos::dra
