// What is told of a cluster's objects to a telemetry server, as records (docs/telemetry.md).
//
// Pure functions of values. Records are without their time: what has not changed is not told again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/annotations.h"
#include "cluster/elastic_quota.h"
#include "cluster/objects.h"
#include "codec/json.h"

namespace nos::controllers {

// Whether it is a resource of GPUs, or of slices of them.
bool IsOfGpus(std::string_view resource);
// "pending", "starting", "running", "succeeded", "failed", "terminating".
std::string_view StateOf(const cluster::Pod& pod);
// "job": who made it in the end (JobOf); "ends": by when it will be gone, of one that is being
// deleted. `quota`: "namespace/name" of the one in force in its namespace, or "". `finished`: when
// it was seen to have ended; Time() if it has not.
JsonObject PodRecord(const cluster::Pod& pod, const std::string& quota, Time finished);

// What the pods of a node ask for: cores, MiB.
struct NodeRequests {
  double cpu = 0, memory = 0;
  void Add(const cluster::Pod& pod);
};
JsonObject NodeRecord(const cluster::Node& node, const NodeRequests& requested);

JsonObject QuotaRecord(const cluster::ElasticQuota& quota);
// "ElasticQuota/team-a/quota"
std::string IdOf(const cluster::ElasticQuota& quota);

// How many instances of each profile each GPU has: [{"index":0,"profiles":{"1g.5gb":3}}].
JsonArray LayoutOf(const cluster::NodeGpus& gpus);
// The same once the specification is carried out.
JsonArray TargetOf(const cluster::Node& node, const cluster::NodeGpus& gpus);

using SliceCounts = std::map<std::string, int64_t, std::less<>>;  // by resource
// Of which slices the node has more once its specification is carried out than `before`, and how
// many.
SliceCounts SlicesAdded(const cluster::NodeGpus& before, const cluster::Node& node,
                        const cluster::NodeGpus& gpus);

}  // namespace nos::controllers
