// The records that describe cluster objects to a telemetry server (docs/telemetry.md).
//
// Pure functions. Records have no time, so that an unchanged record can be recognised and skipped.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/annotations.h"
#include "cluster/context.h"
#include "cluster/elastic_quota.h"
#include "cluster/objects.h"
#include "codec/json.h"
#include "dra/device_counts.h"

namespace nos::controllers {

// True for GPU resources, including slices.
bool IsOfGpus(std::string_view resource);
// Devices of the pod's ResourceClaims as resources. A claim with devices: the resources of device
// plugins that they correspond to ("nvidia.com/mig-1g.10gb"). A claim without: the classes that it
// requests, as Kubernetes names them in pods ("deviceclass.resource.kubernetes.io/mig.nvidia.com").
dra::DeviceCounts DevicesOf(const cluster::Pod& pod, const cluster::ClusterContext& context);
// "job": the topmost owner (JobOf). "remedy": if `message` does not end with it. "evicted": for
// which pod (UID) and by which scheduler it is evicted, and why. "ends": for a pod being deleted,
// the time by which it will be removed. `quota`: "namespace/name" of the quota in force in its
// namespace, or "". `finished`: when its end was observed; Time() while it runs.
JsonObject PodRecord(const cluster::Pod& pod, const dra::DeviceCounts& devices,
                     const std::string& quota, Time finished);

// Sum of the requests of a node's pods: cores, MiB.
struct NodeRequests {
  double cpu = 0, memory = 0;
  void Add(const cluster::Pod& pod);
};
JsonObject NodeRecord(const cluster::Node& node, const NodeRequests& requested);

JsonObject QuotaRecord(const cluster::ElasticQuota& quota);
// "ElasticQuota/team-a/quota"
std::string IdOf(const cluster::ElasticQuota& quota);

// Instances of each profile on each GPU: [{"index":0,"profiles":{"1g.5gb":3}}].
JsonArray LayoutOf(const cluster::NodeGpus& gpus);
// The same after the spec has been carried out.
JsonArray TargetOf(const cluster::Node& node, const cluster::NodeGpus& gpus);

using SliceCounts = std::map<std::string, int64_t, std::less<>>;  // by resource
// The slices that the node gains over `before` when its spec is carried out.
SliceCounts SlicesAdded(const cluster::NodeGpus& before, const cluster::Node& node,
                        const cluster::NodeGpus& gpus);

}  // namespace nos::controllers
