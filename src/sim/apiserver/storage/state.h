// The complete state of the server, for the functions that read and write it. Not thread-safe: the
// server holds its mutex for the duration of each request.
#pragma once

#include <memory>

#include "base/clock.h"
#include "sim/apiserver/schemas/types.h"
#include "sim/apiserver/storage/store.h"

namespace nos::sim {

struct ApiState {
  const Clock& clock;
  std::shared_ptr<WatchHub> hub;
  Store store;
  TypeRegistry types;
  size_t max_objects;
};

}  // namespace nos::sim
