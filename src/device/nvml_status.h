// What NVML's return codes mean to the caller, and what to tell people.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "device/nvml_abi.h"

namespace nos::device {

// "NVML_ERROR_IN_USE"; "NVML error 1234" for a code that is not known.
std::string NvmlCodeName(nvml::Return code);

// OK for kSuccess. Else "<call>: NVML_ERROR_GPU_IS_LOST: the GPU has fallen off the bus: ...", with
// the code:
//   kUnavailable    driver not there or not ready, GPU lost, something in use
//   kExhausted      insufficient resources: another instance is in the way
//   kPermission     not allowed, or an operator has to reset the GPU
//   kUnimplemented  not supported by this GPU, or by this driver
//   kInvalid, kNotFound, kDeadline as NVML says; kInternal for the rest
Status ToStatus(nvml::Return code, std::string_view call);

}  // namespace nos::device
