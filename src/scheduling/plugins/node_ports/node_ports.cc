#include "scheduling/plugins/node_ports/node_ports.h"

#include <algorithm>

namespace nos::scheduling {
namespace {

using cluster::HostPort;
using Ports = std::vector<HostPort>;

struct Wanted {
  Ports ports;
};

bool IsEveryAddress(const HostPort& port) { return port.ip.empty() || port.ip == "0.0.0.0"; }

std::string_view ProtocolOf(const HostPort& port) {
  return port.protocol.empty() ? std::string_view("TCP") : port.protocol;
}

bool Conflict(const HostPort& a, const HostPort& b) {
  return a.port == b.port && ProtocolOf(a) == ProtocolOf(b) &&
         (a.ip == b.ip || IsEveryAddress(a) || IsEveryAddress(b));
}

bool Conflict(const Ports& wanted, const Ports& taken) {
  return std::ranges::any_of(taken, [&](const HostPort& there) {
    return std::ranges::any_of(wanted, [&](const HostPort& port) { return Conflict(port, there); });
  });
}

}  // namespace

bool NodePorts::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  if (event.kind == ClusterEvent::Kind::kNodeAdded) return true;
  return event.kind == ClusterEvent::Kind::kPodLeft &&
         Conflict(cluster::HostPortsOf(pod), cluster::HostPortsOf(*event.pod_before));
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
  const bool conflict = wanted != nullptr ? Conflict(wanted->ports, node.ports)
                                          : Conflict(cluster::HostPortsOf(pod), node.ports);
  if (!conflict) return Verdict::Fits();
  return Verdict::Unschedulable("PortTaken",
                                "node(s) didn't have free ports for the requested pod ports");
}

}  // namespace nos::scheduling
