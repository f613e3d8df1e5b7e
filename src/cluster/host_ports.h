// The ports of nodes that pods take, and which of them cannot be had beside each other.
//
// Pure functions of values. Costs follow the number of ports, of which a hostile pod may have many.
#pragma once

#include <vector>

#include "cluster/objects.h"

namespace nos::cluster {

// By port, protocol and address; TCP and every address ("") stand where none is given.
using HostPorts = std::vector<HostPort>;

// Of its containers and sidecars.
HostPorts HostPortsOf(const Pod& pod);
// Puts more ports to those that are there, or takes as many away.
void AddPorts(const HostPorts& more, HostPorts& to);
void RemovePorts(const HostPorts& some, HostPorts& from);
// Whether the port is among those that are taken; one on every address is if it is on any.
bool IsTaken(const HostPort& port, const HostPorts& taken);
bool AnyIsTaken(const HostPorts& ports, const HostPorts& taken);

}  // namespace nos::cluster
