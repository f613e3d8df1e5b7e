// A pod as it is sent to be made, which admission webhooks see.
#pragma once

#include "base/status.h"
#include "cluster/objects.h"

namespace nos::cluster {

// As ReadPod; but the API server may be about to make its name up (metadata.generateName): "" then.
Status ReadNewPod(JsonSource json, Pod& to);

}  // namespace nos::cluster
