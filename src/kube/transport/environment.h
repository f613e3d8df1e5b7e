// Internal to this room.
#pragma once

#include <string>

namespace nos::kube {

// "" when it is not set.
std::string FromEnvironment(const char* name);

}  // namespace nos::kube
