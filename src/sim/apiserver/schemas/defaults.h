// What the real server fills in when an object is written (k8s.io/kubernetes/pkg/apis/*/v1
// defaults.go), as far as kubectl shows it or a scheduler or kubelet reads it.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Idempotent; never changes a value that is set.
void ApplyDefaults(const ResourceType& type, Json& object);
// The status that a new object starts with, whatever the client sent. Nodes and namespaces keep
// theirs.
void ResetStatus(const ResourceType& type, Json& object);
// "Guaranteed", "Burstable" or "BestEffort", by CPU and memory.
std::string_view QosClassOf(const Json& pod);

}  // namespace nos::sim
