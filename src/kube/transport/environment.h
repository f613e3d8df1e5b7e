// Internal to this library.
#pragma once

#include <string>

namespace nos::kube {

// The variable's value; "" if it is not set.
std::string FromEnvironment(const char* name);

}  // namespace nos::kube
