// Clusters and pods made up from a seed: what the API server gets, as JSON.
//
//   Draw draw(seed);
//   const ClusterObjects cluster = MakeCluster(draw, "c7");
//   const PodObjects pod = MakePod(draw, cluster, "c7-p0");
//
// The same seed makes the same objects. Names of nodes, volumes and pods begin with the cluster's.
#pragma once

#include <string>
#include <vector>

#include "scheduler_differential/draw.h"

namespace nos::differential {

// The profiles of kube-scheduler.yaml: schedulerNames of the pods to decide.
inline constexpr const char* kProfile = "differential";
extern const std::vector<std::string> kOtherProfiles;         // with arguments of their plugins
inline constexpr const char* kClusterLabel = "differential";  // of nodes, with the cluster's name

inline constexpr const char* kChangeLabel = "changed";  // of a node, with a mark of its change

extern const std::vector<std::string> kNamespaceNames;

// What every cluster finds: namespaces, priority classes, runtime classes, storage classes.
std::vector<Json> CommonObjects();

struct ClusterObjects {
  std::string name;
  std::vector<Json> nodes;
  std::vector<Json> around;  // all that is neither node nor pod
  std::vector<Json> claims;  // for volumes that are there then
  std::vector<Json> pods;    // that run, or wait for the node that they were promised
  bool volumes = false;      // pods may ask for some
  bool promises = false;     // some of `pods` were promised a node
};
ClusterObjects MakeCluster(Draw& draw, const std::string& name);

struct PodObjects {
  Json pod;
  std::vector<Json> claims;  // that it needs, to be created before it
  bool gated = false;
};
PodObjects MakePod(Draw& draw, const ClusterObjects& cluster, const std::string& name);

// A pod that asks all nodes with these labels, and only these, for what none has. It preempts
// nobody.
Json MakeSentinel(const std::string& name, JsonObject node_labels);

// All pods of a cluster have begun at different minutes: which of those that began together goes
// first when pods are preempted is chance.
std::string StartTime(int minutes);

// Parts, for each other.
Json MakeNode(Draw& draw, const std::string& cluster, int index);
// A merge patch, which also sets kChangeLabel.
Json MakeNodeChange(Draw& draw, const std::string& mark);
JsonArray MakeTolerations(Draw& draw);
Json MakeLabelSelector(Draw& draw);
JsonObject MakePodLabels(Draw& draw);
void AddNodeAffinity(Draw& draw, const ClusterObjects& cluster, JsonObject& spec);
void AddPodAffinity(Draw& draw, JsonObject& spec);
void AddSpread(Draw& draw, const ClusterObjects& cluster, JsonObject& spec);
// The spec that pods that run and pods to decide have in common.
JsonObject MakeContainers(Draw& draw, bool small);
// Volumes of the cluster, with claims bound to them and classes; and a pod's.
void AddClusterVolumes(Draw& draw, ClusterObjects& cluster);
void AddPodVolumes(Draw& draw, const ClusterObjects& cluster, const std::string& name,
                   const std::string& ns, PodObjects& pod);

}  // namespace nos::differential
