// Defaults of the real server for written objects (k8s.io/kubernetes/pkg/apis/*/v1 defaults.go),
// limited to fields that kubectl shows or that a scheduler or kubelet reads.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Idempotent; never changes a value that is set.
void ApplyDefaults(const ResourceType& type, Json& object);
// Replaces the status of a new object by the initial one, whatever the client sent; that of a pod
// with scheduling gates has a condition. Nodes and namespaces keep the sent status.
void ResetStatus(const ResourceType& type, Json& object);
// "Guaranteed", "Burstable" or "BestEffort", by CPU and memory.
std::string_view QosClassOf(const Json& pod);

}  // namespace nos::sim
