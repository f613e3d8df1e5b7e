// Makes an API call on other threads if there are any, else at once with `client`.
#pragma once

#include <utility>

#include "kube/workers.h"

namespace nos::controllers {

inline void Post(kube::Workers* workers, kube::Client& client, kube::Workers::Call call) {
  workers != nullptr ? workers->Post(std::move(call)) : call(client);
}

}  // namespace nos::controllers
