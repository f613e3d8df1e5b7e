// The GPUs of a churn run under one policy.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/catalogue.h"
#include "study/churn/mix.h"
#include "study/churn/simulation.h"

namespace nos::study {

using JobId = uint32_t;

class Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host() = default;
  // True if the job was placed. Error: kInternal if the policy broke a rule of the hardware.
  virtual Result<bool> Admit(JobId job, gpu::ProfileId profile) = 0;
  // REQUIRES: the job was admitted.
  virtual void Release(JobId job) = 0;
  // Number of instances moved so far.
  virtual int64_t moves() const { return 0; }
};

// Error: kInvalid if the policy does not support the model and the mix.
Result<std::unique_ptr<Host>> MakeHost(const ChurnOptions& options, const Mix& mix);

}  // namespace nos::study
