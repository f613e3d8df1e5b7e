// Numbers the relocations that this process starts. An id is unique in the process, and unlikely to
// repeat one of another replica.
//
//   Relocation relocation{ids.Next(now), ...};
#pragma once

#include <cstdint>
#include <string>

#include "controllers/relocations.h"

namespace nos::controllers {

class RelocationIds {
 public:
  std::string Next(Time now) {
    return Relocations::NewId(static_cast<uint64_t>(now.time_since_epoch().count()) + ++made_);
  }

 private:
  uint64_t made_ = 0;
};

}  // namespace nos::controllers
