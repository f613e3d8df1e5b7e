#include "device/nvml_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace nos::device {
namespace {

struct Meaning {
  nvml::Return code;
  Code status;
  const char* name;
  const char* text;
};

constexpr Meaning kMeanings[] = {
    {nvml::kUninitialized, Code::kUnavailable, "UNINITIALIZED",
     "the session with the driver ended"},
    {nvml::kInvalidArgument, Code::kInvalid, "INVALID_ARGUMENT", "the driver does not know that"},
    {nvml::kNotSupported, Code::kUnimplemented, "NOT_SUPPORTED",
     "this GPU does not support it, or MIG mode is off"},
    {nvml::kNoPermission, Code::kPermission, "NO_PERMISSION",
     "not allowed: it needs root (CAP_SYS_ADMIN) and, for MIG, the capability devices in "
     "/dev/nvidia-caps"},
    {nvml::kNotFound, Code::kNotFound, "NOT_FOUND", "it is not there"},
    {nvml::kInsufficientSize, Code::kInternal, "INSUFFICIENT_SIZE", "a buffer was too small"},
    {nvml::kInsufficientPower, Code::kPermission, "INSUFFICIENT_POWER",
     "the GPU's external power is not connected properly"},
    {nvml::kDriverNotLoaded, Code::kUnavailable, "DRIVER_NOT_LOADED",
     "the NVIDIA kernel module is not loaded on this node"},
    {nvml::kTimeout, Code::kDeadline, "TIMEOUT", "the driver did not answer in time"},
    {nvml::kIrqIssue, Code::kUnavailable, "IRQ_ISSUE",
     "the kernel has an interrupt problem with it"},
    {nvml::kLibraryNotFound, Code::kUnavailable, "LIBRARY_NOT_FOUND",
     "a library of the driver is missing"},
    {nvml::kFunctionNotFound, Code::kUnimplemented, "FUNCTION_NOT_FOUND",
     "the driver is too old for it"},
    {nvml::kCorruptedInforom, Code::kPermission, "CORRUPTED_INFOROM",
     "the GPU's InfoROM is corrupted: the board needs service"},
    {nvml::kGpuIsLost, Code::kUnavailable, "GPU_IS_LOST",
     "the GPU has fallen off the bus: drain the node and reboot it; replace the GPU if it recurs"},
    {nvml::kResetRequired, Code::kPermission, "RESET_REQUIRED",
     "the GPU must be reset first: drain the node, then nvidia-smi --gpu-reset or a reboot"},
    {nvml::kOperatingSystem, Code::kPermission, "OPERATING_SYSTEM",
     "the operating system (cgroups) keeps this process from the GPU's device files"},
    {nvml::kLibRmVersionMismatch, Code::kUnavailable, "LIB_RM_VERSION_MISMATCH",
     "the driver's library and kernel module are of different versions: reboot the node (or reload "
     "the module) after a driver update"},
    {nvml::kInUse, Code::kUnavailable, "IN_USE",
     "a process (a workload, or a monitor such as DCGM) holds it: it is tried again"},
    {nvml::kMemory, Code::kUnavailable, "MEMORY", "the driver is out of memory"},
    {nvml::kNoData, Code::kNotFound, "NO_DATA", "the driver has no data"},
    {nvml::kInsufficientResources, Code::kExhausted, "INSUFFICIENT_RESOURCES",
     "another instance is in the way"},
    {nvml::kArgumentVersionMismatch, Code::kUnimplemented, "ARGUMENT_VERSION_MISMATCH",
     "the driver does not know this version of the question"},
    {nvml::kNotReady, Code::kUnavailable, "NOT_READY", "the driver is not ready yet"},
    {nvml::kGpuNotFound, Code::kNotFound, "GPU_NOT_FOUND", "there is no GPU"},
    {nvml::kInvalidState, Code::kUnavailable, "INVALID_STATE", "the GPU is in a state without it"},
    {nvml::kUnknown, Code::kInternal, "UNKNOWN",
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
