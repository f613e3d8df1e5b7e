// Queueing hints of InterPodAffinity.
#include <algorithm>

#include "scheduling/framework/domain_sums.h"
#include "scheduling/plugins/inter_pod_affinity/plugin.h"
#include "scheduling/plugins/inter_pod_affinity/terms.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using cluster::PodAffinityTerm;
using Terms = std::vector<PodAffinityTerm>;

bool MayMatchAll(const Terms& terms, const Pod& owner, const Pod& pod) {
  return !terms.empty() && std::ranges::all_of(terms, [&](const PodAffinityTerm& term) {
    return MaySelect(term, owner, pod);
  });
}

bool MayMatchAny(const Terms& terms, const Pod& owner, const Pod& pod) {
  return std::ranges::any_of(
      terms, [&](const PodAffinityTerm& term) { return MaySelect(term, owner, pod); });
}

// True if removing `other` may help: anti-affinity excluded it, or the pod's affinity selects
// `other` and the pod itself, so that without matching pods it may be the first.
bool IsBetterGone(const Pod& pod, const Pod& other) {
  const Terms& near = pod.pod_affinity.required;
  return MayMatchAny(pod.pod_anti_affinity.required, pod, other) ||
         MayMatchAny(other.pod_anti_affinity.required, other, pod) ||
         (MayMatchAll(near, pod, other) && MayMatchAll(near, pod, pod));
}

bool MayHelpBeNear(const Pod& pod, const Pod& other) {
  return MayMatchAll(pod.pod_affinity.required, pod, other);
}

bool ChangeMayHelp(const Pod& pod, const Pod& before, const Pod& after) {
  return before.meta.labels != after.meta.labels &&
         (MayHelpBeNear(pod, after) || IsBetterGone(pod, before));
}

bool HasSomeKey(const Terms& terms, const Node& node) {
  return std::ranges::any_of(terms, [&](const PodAffinityTerm& term) {
    return LabelOf(node, term.topology_key) != nullptr;
  });
}

// A changed or removed label may take the node, with its pods, out of a domain. A new label can
// only help if it adds the node to a domain that the pod's affinity needs.
bool NodeChangeMayHelp(const Pod& pod, const Node& before, const Node& after) {
  for (const auto& [key, value] : before.meta.labels) {
    const std::string* now = LabelOf(after, key);
    if (now == nullptr || *now != value) return true;
  }
  return std::ranges::any_of(pod.pod_affinity.required, [&](const PodAffinityTerm& term) {
    return LabelOf(before, term.topology_key) == nullptr &&
           LabelOf(after, term.topology_key) != nullptr;
  });
}

}  // namespace

bool InterPodAffinity::MayHelp(const ClusterEvent& event, const Pod& pod) const {
  using enum ClusterEvent::Kind;
  const Terms& near = pod.pod_affinity.required;
  switch (event.kind) {
    case kPodBound:
      return MayHelpBeNear(pod, *event.pod);
    case kPodLeft:
      return IsBetterGone(pod, *event.pod_before);
    case kPodChanged:
      return ChangeMayHelp(pod, *event.pod_before, *event.pod);
    case kNodeAdded:
      return near.empty() || HasSomeKey(near, *event.node);
    case kNodeChanged:
      return NodeChangeMayHelp(pod, *event.node_before, *event.node);
    case kNodeRemoved:
      return true;  // the node's pods no longer exclude it
    case kContext:
      return event.context_kind == "Namespace";
  }
  return true;
}

}  // namespace nos::scheduling
