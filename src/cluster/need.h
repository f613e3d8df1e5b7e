// What a pod asks of a GPU by need instead of by name, in its annotations:
//
//   nos.nebuly.com/need-memory: 10Gi          at least so much; what makes it a need
//   nos.nebuly.com/need-compute: "0.25"       of a GPU's multiprocessors; optional
//   nos.nebuly.com/need-isolation: "true"     own memory and multiprocessors, and nobody else's
//                                             faults: MIG; optional
//   nos.nebuly.com/need-models: A100-40GB,H100-80GB     by their names in the catalogue; optional
//   nos.nebuly.com/need-container: main       that gets it; otherwise the first
//
// A webhook (controllers/slice_admission.h) turns it into a resource when the pod is made, and says
// which in nos.nebuly.com/chosen-slice, and why in nos.nebuly.com/chosen-slice-reason.
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

struct Need {
  int64_t memory_mib = 0;
  int64_t compute_milli = 0;  // thousandths of a GPU
  bool isolated = false;
  std::vector<std::string> models{};  // empty: any
  std::string container{};            // empty: the first
};

// None: the pod asks for nothing by need. Error: kInvalid, with the annotation that is wrong.
Result<std::optional<Need>> ReadNeed(const StringMap& annotations);

}  // namespace nos::cluster
