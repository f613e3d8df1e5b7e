// Readers for parts that many kinds share: metadata, and the types of constraints.h. For readers of
// further kinds of objects.
#pragma once

#include "cluster/constraints.h"
#include "cluster/fields.h"
#include "cluster/objects.h"

namespace nos::cluster {

void ReadMeta(Field& from, ObjectMeta& to);
void ReadPodSpec(Field& from, Pod& to);
void ReadCondition(Field& from, Condition& to);
void ReadTaint(Field& from, Taint& to);
void ReadToleration(Field& from, Toleration& to);
void ReadSelector(Field& from, LabelSelector& to);  // metav1.LabelSelector
// v1.NodeSelector
void ReadTerms(Field& from, std::vector<NodeSelectorTerm>& to);
void ReadNodeAffinity(Field& from, NodeAffinity& to);
void ReadPodAffinity(Field& from, PodAffinity& to);
void ReadSpread(Field& from, TopologySpreadConstraint& to);

}  // namespace nos::cluster
