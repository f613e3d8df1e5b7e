// Maps NVML's return codes to Status codes and texts for operators.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "device/nvml_abi.h"

namespace nos::device {

// "NVML_ERROR_IN_USE"; "NVML error 1234" for an unknown code.
std::string NvmlCodeName(nvml::Return code);

// OK for kSuccess. Else "<call>: NVML_ERROR_GPU_IS_LOST: the GPU has fallen off the bus: ...", with
// the code:
//   kUnavailable    driver not loaded or not ready, GPU lost, or in use
//   kExhausted      insufficient resources: another instance is in the way
//   kPermission     not allowed, or an operator has to reset the GPU
//   kUnimplemented  not supported by this GPU, or by this driver
//   kInvalid, kNotFound, kDeadline as NVML says; kInternal for the rest
Status ToStatus(nvml::Return code, std::string_view call);

}  // namespace nos::device
