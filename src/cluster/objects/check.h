// Checks that API server validation makes and DecodePod and DecodeNode leave out. Decoding is
// tolerant because it reads objects that a server already stores, perhaps a newer one with values
// that nos does not know: losing a running pod would be worse than misreading its tolerations. A
// file may contain anything, so ReadObjects applies these checks too. Internal to this library.
//
// Source: kubernetes pkg/apis/core/validation (ValidateTolerations with the operators Lt and Gt of
// KEP 5471, ValidateNodeSelectorRequirement, which does not check that the value of Gt and Lt is a
// number, validateNodeTaints, validateContainers).
#pragma once

#include "base/status.h"
#include "cluster/objects.h"

namespace nos::cluster {

// Error: kInvalid with the field: "spec.tolerations[0].operator: 'Bar' is none of Exists, Equal".
Status CheckPod(const Pod& pod);
Status CheckNode(const Node& node);

}  // namespace nos::cluster
