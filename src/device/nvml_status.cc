#include "device/nvml_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace nos::device {
namespace {

struct Meaning {
  nvml::Return code;
  const char* name;
  Code status;
  const char* text;
};

constexpr Meaning kMeanings[] = {
    {nvml::kUninitialized, "UNINITIALIZED", Code::kUnavailable,
     "the session with the driver ended"},
    {nvml::kInvalidArgument, "INVALID_ARGUMENT", Code::kInvalid, "the driver does not know that"},
    {nvml::kNotSupported, "NOT_SUPPORTED", Code::kUnimplemented,
     "this GPU does not support it, or MIG mode is off"},
    {nvml::kNoPermission, "NO_PERMISSION", Code::kPermission,
     "not allowed: it needs root (CAP_SYS_ADMIN) and the MIG capability devices in "
     "/dev/nvidia-caps"},
    {nvml::kNotFound, "NOT_FOUND", Code::kNotFound, "it is not there"},
    {nvml::kInsufficientSize, "INSUFFICIENT_SIZE", Code::kInternal, "a buffer was too small"},
    {nvml::kInsufficientPower, "INSUFFICIENT_POWER", Code::kPermission,
     "the GPU's external power is not connected properly"},
    {nvml::kDriverNotLoaded, "DRIVER_NOT_LOADED", Code::kUnavailable,
     "the NVIDIA kernel module is not loaded on this node"},
    {nvml::kTimeout, "TIMEOUT", Code::kDeadline, "the driver did not answer in time"},
    {nvml::kIrqIssue, "IRQ_ISSUE", Code::kUnavailable,
     "the kernel has an interrupt problem with it"},
    {nvml::kLibraryNotFound, "LIBRARY_NOT_FOUND", Code::kUnavailable,
     "a library of the driver is missing"},
    {nvml::kFunctionNotFound, "FUNCTION_NOT_FOUND", Code::kUnimplemented,
     "the driver is too old for it"},
    {nvml::kCorruptedInforom, "CORRUPTED_INFOROM", Code::kPermission,
     "the GPU's InfoROM is corrupted: the board needs service"},
    {nvml::kGpuIsLost, "GPU_IS_LOST", Code::kUnavailable,
     "the GPU has fallen off the bus: drain the node and reboot it; replace the GPU if it recurs"},
    {nvml::kResetRequired, "RESET_REQUIRED", Code::kPermission,
     "the GPU must be reset first: drain the node, then nvidia-smi --gpu-reset or a reboot"},
    {nvml::kOperatingSystem, "OPERATING_SYSTEM", Code::kPermission,
     "the operating system (cgroups) keeps this process from the GPU's device files"},
    {nvml::kLibRmVersionMismatch, "LIB_RM_VERSION_MISMATCH", Code::kUnavailable,
     "the driver's library and kernel module are of different versions: reboot the node (or reload "
     "the module) after a driver update"},
    {nvml::kInUse, "IN_USE", Code::kUnavailable,
     "a process (a workload, or a monitor such as DCGM) holds it: it is tried again"},
    {nvml::kMemory, "MEMORY", Code::kUnavailable, "the driver is out of memory"},
    {nvml::kNoData, "NO_DATA", Code::kNotFound, "the driver has nothing to tell"},
    {nvml::kInsufficientResources, "INSUFFICIENT_RESOURCES", Code::kExhausted,
     "another instance is in the way"},
    {nvml::kArgumentVersionMismatch, "ARGUMENT_VERSION_MISMATCH", Code::kUnimplemented,
     "the driver does not know this version of the question"},
    {nvml::kNotReady, "NOT_READY", Code::kUnavailable, "the driver is not ready yet"},
    {nvml::kGpuNotFound, "GPU_NOT_FOUND", Code::kNotFound, "there is no GPU"},
    {nvml::kInvalidState, "INVALID_STATE", Code::kUnavailable, "the GPU is in a state without it"},
    {nvml::kUnknown, "UNKNOWN", Code::kInternal,
     "the driver failed; see the kernel log (NVRM, Xid)"},
};

const Meaning* Find(nvml::Return code) {
  const auto* found = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                   [&](const Meaning& meaning) { return meaning.code == code; });
  return found == std::end(kMeanings) ? nullptr : found;
}

}  // namespace

std::string NvmlCodeName(nvml::Return code) {
  const Meaning* meaning = Find(code);
  if (meaning != nullptr) return fmt::format("NVML_ERROR_{}", meaning->name);
  return fmt::format("NVML error {}", static_cast<unsigned>(code));
}

Status ToStatus(nvml::Return code, std::string_view call) {
  if (code == nvml::kSuccess) return Status::Ok();
  const Meaning* meaning = Find(code);
  return {meaning != nullptr ? meaning->status : Code::kInternal,
          fmt::format("{}: {}: {}", call, NvmlCodeName(code),
                      meaning != nullptr ? meaning->text : "the driver failed")};
}

}  // namespace nos::device
