#include "scheduling/plugins/node_name/plugin.h"

namespace nos::scheduling {
namespace {

Verdict Mismatch() {
  return Verdict::Unresolvable(codes::kNodeNameMismatch,
                               "node(s) didn't match the requested node name");
}

}  // namespace

bool NodeName::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  return event.kind == ClusterEvent::Kind::kNodeAdded && event.node->meta.name == pod.node_name;
}

PreFilterPlugin::Outcome NodeName::PreFilter(const cluster::Pod& pod,
                                             const cluster::ClusterSnapshot&, CycleState&) const {
  if (pod.node_name.empty()) return {};
  return {Verdict::Fits(), std::set<std::string>{pod.node_name}, Mismatch()};
}

Verdict NodeName::Filter(const CycleState&, const cluster::Pod& pod,
                         const cluster::NodeInfo& node) const {
  const bool matches = pod.node_name.empty() || pod.node_name == node.node->meta.name;
  return matches ? Verdict::Fits() : Mismatch();
}

}  // namespace nos::scheduling
