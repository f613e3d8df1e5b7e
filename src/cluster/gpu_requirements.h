// GPU requirements of a pod in its annotations, as an alternative to a resource name:
//
//   nos.nebuly.com/need-memory: 10Gi          minimum GPU memory; this annotation is required
//   nos.nebuly.com/need-compute: "0.25"       of a GPU's multiprocessors; optional
//   nos.nebuly.com/need-isolation: "true"     own memory and multiprocessors, and isolation from
//                                             faults of other pods: MIG; optional
//   nos.nebuly.com/need-models: A100-40GB,H100-80GB     catalogue names of models; optional
//   nos.nebuly.com/need-container: main       the container that gets the slice; default: the first
//
// A webhook (controllers/slice_admission.h) translates them to a resource when the pod is created.
// It records the resource in nos.nebuly.com/chosen-slice and the reason in
// nos.nebuly.com/chosen-slice-reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cluster/objects.h"

namespace nos::cluster {

inline constexpr std::string_view kNeedMemory = "nos.nebuly.com/need-memory";
inline constexpr std::string_view kNeedCompute = "nos.nebuly.com/need-compute";
inline constexpr std::string_view kNeedIsolation = "nos.nebuly.com/need-isolation";
inline constexpr std::string_view kNeedModels = "nos.nebuly.com/need-models";
inline constexpr std::string_view kNeedContainer = "nos.nebuly.com/need-container";
inline constexpr std::string_view kChosenSlice = "nos.nebuly.com/chosen-slice";
inline constexpr std::string_view kChosenSliceReason = "nos.nebuly.com/chosen-slice-reason";

struct GpuRequirements {
  int64_t memory_mib = 0;
  int64_t compute_milli = 0;  // thousandths of a GPU
  bool isolated = false;
  std::vector<std::string> models{};  // empty: any model
  std::string container{};            // empty: the first container
};

// nullopt if the pod has no GPU requirements. Error: kInvalid, with the faulty annotation.
Result<std::optional<GpuRequirements>> ReadGpuRequirements(const StringMap& annotations);

}  // namespace nos::cluster
