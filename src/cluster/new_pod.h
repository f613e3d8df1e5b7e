// A pod in a create request, as admission webhooks receive it.
#pragma once

#include "base/status.h"
#include "cluster/objects.h"

namespace nos::cluster {

// Like ReadPod. The name may be "": the API server may still have to generate it
// (metadata.generateName).
Status ReadNewPod(JsonSource json, Pod& to);

}  // namespace nos::cluster
