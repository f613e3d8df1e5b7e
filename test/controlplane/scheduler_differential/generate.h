// Generates clusters and pods from a seed, as JSON for the API server.
//
//   Draw draw(seed);
//   const ClusterObjects cluster = MakeCluster(draw, "c7");
//   const PodObjects pod = MakePod(draw, cluster, "c7-p0");
//
// The same seed gives the same objects. Names of nodes, volumes and pods begin with the cluster's.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scheduler_differential/draw.h"

namespace nos::differential {

// The profiles of kube-scheduler.yaml: schedulerNames of the test pods.
inline constexpr const char* kProfile = "differential";
extern const std::vector<std::string> kOtherProfiles;         // with arguments of their plugins
inline constexpr const char* kClusterLabel = "differential";  // of nodes; value: the cluster's name

inline constexpr const char* kChangeLabel = "changed";  // of a node: mark of its last change

extern const std::vector<std::string> kNamespaceNames;

// The parts of resource.k8s.io that a version of Kubernetes has, with the gates that
// dra_differential_test.sh sets.
struct DeviceApi {
  int minor = 0;  // of Kubernetes 1.`minor`; 0: clusters have no devices
  bool any() const { return minor > 0; }
  // Shared counters are in slices of their own.
  bool counters_apart() const { return minor >= 35; }
  // DRAConsumableCapacity: several claims share a device. distinctAttribute needs this gate too.
  bool shares() const { return minor >= 36; }
  // A node that lists 0 of an extended resource may get it from a DeviceClass.
  bool serves_zero() const { return minor >= 35; }
  // The version of DeviceTaintRules; "": not served.
  std::string taint_rules() const {
    if (minor == 34) return "v1alpha3";
    return minor >= 37 ? "v1" : "";
  }
};

// Objects shared by all clusters: namespaces, priority classes, runtime classes, storage classes.
std::vector<Json> CommonObjects(const DeviceApi& devices);

struct ClusterObjects {
  std::string name;
  std::vector<Json> nodes;
  std::vector<Json> context;  // all other objects
  std::vector<Json> claims;   // for existing volumes
  std::vector<Json> pods;     // running, or pending with a nominated node
  bool volumes = false;       // pods may use volumes
  bool promises = false;      // some of `pods` have a nominated node
  // The rest is empty unless the cluster has devices.
  DeviceApi devices;
  bool faulty = false;               // expressions of claims may fail
  std::vector<Json> device_claims;   // of the cluster's pods; some have an allocation
  std::vector<std::string> classes;  // names of DeviceClasses
  std::vector<std::string> served;   // extended resources that a DeviceClass serves
};
ClusterObjects MakeCluster(Draw& draw, const std::string& name);
// A cluster with devices, in which pods ask for little else.
ClusterObjects MakeDeviceCluster(Draw& draw, const std::string& name, const DeviceApi& devices);
// No pod is being resized any more. Draws nothing, so that all else is the same for a seed.
void EndResizes(ClusterObjects& cluster);

struct PodObjects {
  Json pod;
  std::vector<Json> claims;  // of the pod, to be created before it
  bool gated = false;
  bool held = false;            // a claim does not exist, so that the pod is not queued
  std::set<std::string> kinds;  // of its claims, for the summary
};
// For a cluster with devices: a pod with claims.
PodObjects MakeClaimingPod(Draw& draw, const ClusterObjects& cluster, const std::string& name);
PodObjects MakePod(Draw& draw, const ClusterObjects& cluster, const std::string& name);

// A pod that matches exactly the nodes with these labels and requests a resource that no node has.
// It never preempts.
Json MakeSentinel(const std::string& name, JsonObject node_labels);

// Gives each pod of a cluster its own start time: the order of eviction among pods with the same
// start time is not deterministic.
std::string StartTime(int minutes);

// A merge patch of a ResourceSlice or DeviceClass.
Json MakeDeviceChange(Draw& draw, const Json& object);

// Building blocks, used by the other make_*.cc files.
Json MakeNode(Draw& draw, const std::string& cluster, int index);
// A merge patch, which also sets kChangeLabel.
Json MakeNodeChange(Draw& draw, const std::string& mark);
JsonArray MakeTolerations(Draw& draw);
Json MakeLabelSelector(Draw& draw);
JsonObject MakePodLabels(Draw& draw);
void AddNodeAffinity(Draw& draw, const ClusterObjects& cluster, JsonObject& spec);
void AddPodAffinity(Draw& draw, JsonObject& spec);
void AddSpread(Draw& draw, const ClusterObjects& cluster, JsonObject& spec);
// The common spec of running pods and test pods.
JsonObject MakeContainers(Draw& draw, bool small);
// spec of a ResourceClaim. `admin`: requests may have admin access.
JsonObject MakeClaimSpec(Draw& draw, const ClusterObjects& cluster, bool admin);
// ResourceClaims and templates in each namespace.
void AddClusterClaims(Draw& draw, ClusterObjects& cluster);
// Volumes of the cluster, with bound claims and classes; and volumes of a pod.
void AddClusterVolumes(Draw& draw, ClusterObjects& cluster);
void AddPodVolumes(Draw& draw, const ClusterObjects& cluster, const std::string& name,
                   const std::string& ns, PodObjects& pod);

}  // namespace nos::differential
