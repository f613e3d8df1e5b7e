// Generates clusters and pods from a seed, as JSON for the API server.
//
//   Draw draw(seed);
//   const ClusterObjects cluster = MakeCluster(draw, "c7");
//   const PodObjects pod = MakePod(draw, cluster, "c7-p0");
//
// The same seed gives the same objects. Names of nodes, volumes and pods begin with the cluster's.
#pragma once

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

// Objects shared by all clusters: namespaces, priority classes, runtime classes, storage classes.
std::vector<Json> CommonObjects();

struct ClusterObjects {
  std::string name;
  std::vector<Json> nodes;
  std::vector<Json> around;  // all other objects
  std::vector<Json> claims;  // for existing volumes
  std::vector<Json> pods;    // running, or pending with a nominated node
  bool volumes = false;      // pods may use volumes
  bool promises = false;     // some of `pods` have a nominated node
};
ClusterObjects MakeCluster(Draw& draw, const std::string& name);
// No pod is being resized any more. Draws nothing, so that all else is the same for a seed.
void EndResizes(ClusterObjects& cluster);

struct PodObjects {
  Json pod;
  std::vector<Json> claims;  // of the pod, to be created before it
  bool gated = false;
};
PodObjects MakePod(Draw& draw, const ClusterObjects& cluster, const std::string& name);

// A pod that matches exactly the nodes with these labels and requests a resource that no node has.
// It never preempts.
Json MakeSentinel(const std::string& name, JsonObject node_labels);

// Gives each pod of a cluster its own start time: the order of eviction among pods with the same
// start time is not deterministic.
std::string StartTime(int minutes);

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
// Volumes of the cluster, with bound claims and classes; and volumes of a pod.
void AddClusterVolumes(Draw& draw, ClusterObjects& cluster);
void AddPodVolumes(Draw& draw, const ClusterObjects& cluster, const std::string& name,
                   const std::string& ns, PodObjects& pod);

}  // namespace nos::differential
