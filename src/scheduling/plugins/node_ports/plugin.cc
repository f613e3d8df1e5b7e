#include "scheduling/plugins/node_ports/plugin.h"

#include "cluster/host_ports.h"

namespace nos::scheduling {
namespace {

struct Wanted {
  cluster::HostPorts ports;
};

}  // namespace

bool NodePorts::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  if (event.kind == ClusterEvent::Kind::kNodeAdded) return true;
  return event.kind == ClusterEvent::Kind::kPodLeft &&
         cluster::AnyIsTaken(cluster::HostPortsOf(pod), cluster::HostPortsOf(*event.pod_before));
}

bool NodePorts::Concerns(const cluster::Pod& pod) const {
  return !cluster::HostPortsOf(pod).empty();
}

PreFilterPlugin::Outcome NodePorts::PreFilter(const cluster::Pod& pod,
                                              const cluster::ClusterSnapshot&,
                                              CycleState& state) const {
  Outcome outcome;
  outcome.skip = state.Set(Wanted{cluster::HostPortsOf(pod)}).ports.empty();
  return outcome;
}

Verdict NodePorts::Filter(const CycleState& state, const cluster::Pod& pod,
                          const cluster::NodeInfo& node) const {
  if (node.ports.empty()) return Verdict::Fits();
  const auto* wanted = state.Get<Wanted>();
  const bool taken = wanted != nullptr ? cluster::AnyIsTaken(wanted->ports, node.ports)
                                       : cluster::AnyIsTaken(cluster::HostPortsOf(pod), node.ports);
  if (!taken) return Verdict::Fits();
  return Verdict::Unschedulable(codes::kPortTaken,
                                "node(s) didn't have free ports for the requested pod ports");
}

}  // namespace nos::scheduling
