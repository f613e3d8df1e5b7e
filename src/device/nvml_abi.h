// The part of NVML's binary interface that nos uses, declared by hand, so that the build needs no
// CUDA and the program needs only the driver's libnvidia-ml.so.1.
//
// Source of every layout, value and signature: NVIDIA's nvml.h, API version 13, as published in
// github.com/NVIDIA/go-nvml (gen/nvml/nvml.h), and the NVML API reference
// (docs.nvidia.com/deploy/nvml-api). Names of fields are ours, their order and width are NVIDIA's.
// These are plain C types without checks: readers must validate everything that a driver writes.
#pragma once

#include <cstddef>

namespace nos::device::nvml {

// Opaque. A handle may become stale at any time, so the backend never keeps one across calls.
using Device = struct DeviceHandle*;  // a GPU or a MIG device
using GpuInstanceRef = struct GpuInstanceHandle*;
using ComputeInstanceRef = struct ComputeInstanceHandle*;
using EventSet = struct EventSetHandle*;
using GpmSample = struct GpmSampleHandle*;

// nvmlReturn_t. A driver may return unlisted numbers.
enum Return : unsigned {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInsufficientPower = 8,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kIrqIssue = 11,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kCorruptedInforom = 14,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kInUse = 19,
  kMemory = 20,
  kNoData = 21,
  kInsufficientResources = 23,
  kArgumentVersionMismatch = 25,
  kNotReady = 27,
  kGpuNotFound = 28,
  kInvalidState = 29,
  kUnknown = 999,
};

inline constexpr size_t kUuidSize = 96;     // NVML_DEVICE_UUID_V2_BUFFER_SIZE
inline constexpr size_t kNameSize = 96;     // NVML_DEVICE_NAME_V2_BUFFER_SIZE
inline constexpr size_t kVersionSize = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
inline constexpr unsigned kMigDisable = 0;  // NVML_DEVICE_MIG_DISABLE
inline constexpr unsigned kMigEnable = 1;   // NVML_DEVICE_MIG_ENABLE
inline constexpr unsigned kNoInstance = 0xFFFFFFFF;
// nvmlComputeMode_t
inline constexpr unsigned kComputeDefault = 0;           // NVML_COMPUTEMODE_DEFAULT
inline constexpr unsigned kComputeExclusiveProcess = 3;  // NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
// nvmlEventType*
inline constexpr unsigned long long kEventDoubleBitEcc = 0x2;
inline constexpr unsigned long long kEventXidCritical = 0x8;

struct PciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned device_id;  // device << 16 | vendor
  unsigned subsystem_id;
  char bus_id[32];
};

struct Memory {  // nvmlMemory_t, bytes
  unsigned long long total, free, used;
};

struct MemoryV2 {  // nvmlMemory_v2_t, bytes
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct Utilization {  // nvmlUtilization_t, per cent
  unsigned gpu, memory;
};

struct ProcessInfo {  // nvmlProcessInfo_t, the same in _v2 and _v3
  unsigned pid;
  unsigned long long memory;  // bytes; kNoMemory: unknown
  unsigned gpu_instance;      // kNoInstance: the whole GPU
  unsigned compute_instance;
};

struct GpmSupport {  // nvmlGpmSupport_t
  unsigned version, supported;
};

struct GpmMetric {  // nvmlGpmMetric_t
  unsigned id;
  Return code;
  double value;
  const char *short_name, *long_name, *unit;
};

struct GpmMetricsGet {  // nvmlGpmMetricsGet_t; only the first `count` metrics are read
  unsigned version, count;
  GpmSample first, second;
  GpmMetric metrics[333];  // NVML_GPM_METRIC_MAX
};

struct PlacementSlots {  // nvmlGpuInstancePlacement_t
  unsigned start, size;
};

struct GpuInstanceProfileInfo {  // nvmlGpuInstanceProfileInfo_t
  unsigned id, p2p_supported, slice_count, instance_count, multiprocessors;
  unsigned copy_engines, decoders, encoders, jpegs, ofas;
  unsigned long long memory_mib;
};

struct GpuInstanceProfileInfoV2 {  // nvmlGpuInstanceProfileInfo_v2_t
  unsigned version;
  unsigned id, p2p_supported, slice_count, instance_count, multiprocessors;
  unsigned copy_engines, decoders, encoders, jpegs, ofas;
  unsigned long long memory_mib;
  char name[kNameSize];  // "MIG 1g.5gb"
};

struct GpuInstanceInfo {  // nvmlGpuInstanceInfo_t
  Device parent;
  unsigned id, profile_id;
  PlacementSlots placement;
};

struct ComputeInstanceProfileInfo {  // nvmlComputeInstanceProfileInfo_t
  unsigned id, slice_count, instance_count, multiprocessors;
  unsigned copy_engines, decoders, encoders, jpegs, ofas;
};

struct ComputeInstanceInfo {  // nvmlComputeInstanceInfo_t
  Device device;              // _v2: the MIG device, although the header says "parent device"
  GpuInstanceRef parent;
  unsigned id, profile_id;
  PlacementSlots placement;
};

struct EventData {  // nvmlEventData_t
  Device device;
  unsigned long long type;
  unsigned long long data;  // the Xid; 999 is "unknown"
  unsigned gpu_instance;    // kNoInstance: the whole GPU
  unsigned compute_instance;
};

inline constexpr unsigned long long kNoMemory = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE
inline constexpr unsigned kTemperatureGpu = 0;          // NVML_TEMPERATURE_GPU
inline constexpr unsigned kClockSm = 1;                 // NVML_CLOCK_SM
inline constexpr unsigned kClockMemory = 2;             // NVML_CLOCK_MEM
inline constexpr unsigned kEccCorrected = 0;            // NVML_MEMORY_ERROR_TYPE_CORRECTED
inline constexpr unsigned kEccUncorrected = 1;          // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
inline constexpr unsigned kEccVolatile = 0;             // NVML_VOLATILE_ECC
inline constexpr unsigned kGpmVersion =
    1;  // NVML_GPM_METRICS_GET_VERSION, NVML_GPM_SUPPORT_VERSION
// NVML_GPM_METRIC_*: per cent, per cent of the bandwidth, MiB/s from and to the GPU.
inline constexpr unsigned kGpmGraphicsUtil = 1;
inline constexpr unsigned kGpmDramUtil = 10;
inline constexpr unsigned kGpmPcieTx = 20;
inline constexpr unsigned kGpmPcieRx = 21;

// NVML_STRUCT_VERSION: the size in the low bits, the version above.
template <typename Struct>
constexpr unsigned StructVersion(unsigned version) {
  return static_cast<unsigned>(sizeof(Struct)) | version << 24;
}

static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, device_id) == 28);
static_assert(sizeof(GpuInstanceProfileInfo) == 48);
static_assert(sizeof(GpuInstanceProfileInfoV2) == 152);
static_assert(offsetof(GpuInstanceProfileInfoV2, memory_mib) == 48);
static_assert(sizeof(GpuInstanceInfo) == 24 && sizeof(ComputeInstanceInfo) == 32);
static_assert(sizeof(MemoryV2) == 40 && sizeof(ProcessInfo) == 24);
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetricsGet, metrics) == 24);
static_assert(sizeof(ComputeInstanceProfileInfo) == 36 && sizeof(EventData) == 32);

// The feature that needs a function. kCore: nothing works without it. kFallback: another function
// replaces it, or nos only shows its answer.
enum class Feature {
  kCore,
  kMig,
  kProfileNames,
  kMigDevices,
  kHealthEvents,
  kDriverVersion,
  kReadings,
  kGpm,
  kComputeMode,
  kFallback
};

// Every function used: X(name in the library, feature, parameters).
#define NOS_NVML_FUNCTIONS(X)                                                                    \
  X(nvmlInit_v2, kCore, ())                                                                      \
  X(nvmlShutdown, kCore, ())                                                                     \
  X(nvmlDeviceGetCount_v2, kCore, (unsigned* count))                                             \
  X(nvmlDeviceGetHandleByIndex_v2, kCore, (unsigned index, Device* device))                      \
  X(nvmlDeviceGetUUID, kCore, (Device device, char* uuid, unsigned size))                        \
  X(nvmlDeviceGetName, kCore, (Device device, char* name, unsigned size))                        \
  X(nvmlDeviceGetPciInfo_v3, kCore, (Device device, PciInfo * pci))                              \
  X(nvmlDeviceGetMemoryInfo, kCore, (Device device, Memory * memory))                            \
  X(nvmlSystemGetDriverVersion, kDriverVersion, (char* version, unsigned size))                  \
  X(nvmlSystemGetCudaDriverVersion_v2, kFallback, (int* version))                                \
  X(nvmlDeviceGetMigMode, kMig, (Device device, unsigned* current, unsigned* pending))           \
  X(nvmlDeviceSetMigMode, kMig, (Device device, unsigned mode, Return* activation))              \
  X(nvmlDeviceGetGpuInstanceProfileInfo, kMig,                                                   \
    (Device device, unsigned profile, GpuInstanceProfileInfo* info))                             \
  X(nvmlDeviceGetGpuInstancePossiblePlacements_v2, kMig,                                         \
    (Device device, unsigned profile_id, PlacementSlots* placements, unsigned* count))           \
  X(nvmlDeviceCreateGpuInstanceWithPlacement, kMig,                                              \
    (Device device, unsigned profile_id, const PlacementSlots* placement,                        \
     GpuInstanceRef* instance))                                                                  \
  X(nvmlGpuInstanceDestroy, kMig, (GpuInstanceRef instance))                                     \
  X(nvmlDeviceGetGpuInstances, kMig,                                                             \
    (Device device, unsigned profile_id, GpuInstanceRef* instances, unsigned* count))            \
  X(nvmlDeviceGetGpuInstanceById, kMig, (Device device, unsigned id, GpuInstanceRef* instance))  \
  X(nvmlGpuInstanceGetInfo, kMig, (GpuInstanceRef instance, GpuInstanceInfo * info))             \
  X(nvmlGpuInstanceGetComputeInstanceProfileInfo, kMig,                                          \
    (GpuInstanceRef instance, unsigned profile, unsigned engine_profile,                         \
     ComputeInstanceProfileInfo* info))                                                          \
  X(nvmlGpuInstanceCreateComputeInstance, kMig,                                                  \
    (GpuInstanceRef instance, unsigned profile_id, ComputeInstanceRef* made))                    \
  X(nvmlComputeInstanceDestroy, kMig, (ComputeInstanceRef instance))                             \
  X(nvmlGpuInstanceGetComputeInstances, kMig,                                                    \
    (GpuInstanceRef instance, unsigned profile_id, ComputeInstanceRef* instances,                \
     unsigned* count))                                                                           \
  X(nvmlComputeInstanceGetInfo_v2, kMig,                                                         \
    (ComputeInstanceRef instance, ComputeInstanceInfo * info))                                   \
  X(nvmlDeviceGetGpuInstanceProfileInfoV, kProfileNames,                                         \
    (Device device, unsigned profile, GpuInstanceProfileInfoV2* info))                           \
  X(nvmlDeviceGetMaxMigDeviceCount, kMigDevices, (Device device, unsigned* count))               \
  X(nvmlDeviceGetMigDeviceHandleByIndex, kMigDevices,                                            \
    (Device device, unsigned index, Device* mig_device))                                         \
  X(nvmlDeviceGetGpuInstanceId, kMigDevices, (Device mig_device, unsigned* id))                  \
  X(nvmlDeviceGetComputeInstanceId, kMigDevices, (Device mig_device, unsigned* id))              \
  X(nvmlEventSetCreate, kHealthEvents, (EventSet * set))                                         \
  X(nvmlEventSetFree, kHealthEvents, (EventSet set))                                             \
  X(nvmlDeviceGetSupportedEventTypes, kHealthEvents, (Device device, unsigned long long* types)) \
  X(nvmlDeviceRegisterEvents, kHealthEvents,                                                     \
    (Device device, unsigned long long types, EventSet set))                                     \
  X(nvmlEventSetWait_v2, kHealthEvents,                                                          \
    (EventSet set, EventData * data, unsigned timeout_milliseconds))                             \
  X(nvmlDeviceGetHandleByUUID, kReadings, (const char* uuid, Device* device))                    \
  X(nvmlDeviceGetComputeMode, kComputeMode, (Device device, unsigned* mode))                     \
  X(nvmlDeviceSetComputeMode, kComputeMode, (Device device, unsigned mode))                      \
  X(nvmlDeviceGetUtilizationRates, kReadings, (Device device, Utilization * utilization))        \
  X(nvmlDeviceGetMemoryInfo_v2, kFallback, (Device device, MemoryV2 * memory))                   \
  X(nvmlDeviceGetPowerUsage, kReadings, (Device device, unsigned* milliwatts))                   \
  X(nvmlDeviceGetEnforcedPowerLimit, kReadings, (Device device, unsigned* milliwatts))           \
  X(nvmlDeviceGetTemperature, kReadings, (Device device, unsigned sensor, unsigned* celsius))    \
  X(nvmlDeviceGetClockInfo, kReadings, (Device device, unsigned clock, unsigned* megahertz))     \
  X(nvmlDeviceGetTotalEccErrors, kReadings,                                                      \
    (Device device, unsigned error, unsigned counter, unsigned long long* errors))               \
  X(nvmlDeviceGetComputeRunningProcesses_v3, kFallback,                                          \
    (Device device, unsigned* count, ProcessInfo* processes))                                    \
  X(nvmlDeviceGetComputeRunningProcesses_v2, kFallback,                                          \
    (Device device, unsigned* count, ProcessInfo* processes))                                    \
  X(nvmlSystemGetProcessName, kFallback, (unsigned pid, char* name, unsigned size))              \
  X(nvmlGpmQueryDeviceSupport, kGpm, (Device device, GpmSupport * support))                      \
  X(nvmlGpmSampleAlloc, kGpm, (GpmSample * sample))                                              \
  X(nvmlGpmSampleFree, kGpm, (GpmSample sample))                                                 \
  X(nvmlGpmSampleGet, kGpm, (Device device, GpmSample sample))                                   \
  X(nvmlGpmMigSampleGet, kGpm, (Device device, unsigned instance, GpmSample sample))             \
  X(nvmlGpmMetricsGet, kGpm, (GpmMetricsGet * get))

// The functions of a loaded library. Null if the library lacks one.
struct Functions {
#define NOS_NVML_MEMBER(name, feature, parameters) Return(*name) parameters = nullptr;
  NOS_NVML_FUNCTIONS(NOS_NVML_MEMBER)
#undef NOS_NVML_MEMBER
};

}  // namespace nos::device::nvml
