#include "kube/transport.h"

namespace nos::kube {}  // namespace nos::kube
