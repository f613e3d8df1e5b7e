// Host ports of pods, and conflicts between them.
//
// Pure functions of values. The cost is proportional to the number of ports; a hostile pod may have
// many.
#pragma once

#include <vector>

#include "cluster/objects.h"

namespace nos::cluster {

// Sorted by port, protocol and address; an omitted protocol is TCP, an omitted address ("") is
// every address.
using HostPorts = std::vector<HostPort>;

// Host ports of the pod's containers and sidecars.
HostPorts HostPortsOf(const Pod& pod);
// Add ports to a list, or remove them from it.
void AddPorts(const HostPorts& more, HostPorts& to);
void RemovePorts(const HostPorts& some, HostPorts& from);
// True if the port conflicts with `taken`. A port on every address conflicts with the same port on
// any address.
bool IsTaken(const HostPort& port, const HostPorts& taken);
bool AnyIsTaken(const HostPorts& ports, const HostPorts& taken);

}  // namespace nos::cluster
