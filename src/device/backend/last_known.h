// The GPUs as last read: one that cannot be read is listed with its last known values.
#pragma once

#include <map>
#include <vector>

#include "device/backend.h"

namespace nos::device {

class LastKnownGpus {
 public:
  // `read`: the answer of each GPU that exists, by index. Returns all of them, by index; those with
  // an error have it as GpuInfo::problem. Other GPUs are forgotten.
  std::vector<GpuInfo> Complete(const std::map<int, Result<GpuInfo>>& read);

 private:
  void ForgetMoved(std::vector<GpuInfo>& infos);

  std::map<int, GpuInfo> known_;  // by index
};

}  // namespace nos::device
