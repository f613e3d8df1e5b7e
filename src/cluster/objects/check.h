// What the API server's validation would refuse and DecodePod and DecodeNode let pass. They must be
// tolerant: they read objects that a server already holds, perhaps a newer one with values that nos
// does not know, and to lose sight of a running pod would be worse than to misread its tolerations.
// A file may hold anything, so ReadObjects also applies these. Internal to this room.
//
// Source: kubernetes pkg/apis/core/validation (ValidateTolerations with the operators Lt and Gt of
// KEP 5471, ValidateNodeSelectorRequirement, which does not ask whether the value of Gt and Lt is a
// number, validateNodeTaints, validateContainers).
#pragma once

#include "base/status.h"
#include "cluster/objects.h"

namespace nos::cluster {

// Error: kInvalid with the field: "spec.tolerations[0].operator: 'Bar' is none of Exists, Equal".
Status CheckPod(const Pod& pod);
Status CheckNode(const Node& node);

}  // namespace nos::cluster
