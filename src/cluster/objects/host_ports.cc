#include "cluster/host_ports.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

namespace nos::cluster {
namespace {

constexpr auto kSocket = [](const HostPort& port) {
  return std::pair(port.port, std::string_view(port.protocol));
};
constexpr auto kOrder = [](const HostPort& a, const HostPort& b) {
  return std::tuple(kSocket(a), std::string_view(a.ip)) <
         std::tuple(kSocket(b), std::string_view(b.ip));
};

void AddFrom(const Container& container, HostPorts& to) {
  for (HostPort port : container.host_ports) {
    if (port.ip == "0.0.0.0") port.ip.clear();
    if (port.protocol.empty()) port.protocol = "TCP";
    to.push_back(std::move(port));
  }
}

}  // namespace

HostPorts HostPortsOf(const Pod& pod) {
  HostPorts ports;
  for (const Container& container : pod.init_containers) {
    if (container.restart_always) AddFrom(container, ports);
  }
  for (const Container& container : pod.containers) AddFrom(container, ports);
  std::ranges::sort(ports, kOrder);
  return ports;
}

void AddPorts(const HostPorts& more, HostPorts& to) {
  const auto middle = static_cast<HostPorts::difference_type>(to.size());
  to.insert(to.end(), more.begin(), more.end());
  std::inplace_merge(to.begin(), to.begin() + middle, to.end(), kOrder);
}

void RemovePorts(const HostPorts& some, HostPorts& from) {
  if (some.empty()) return;
  HostPorts left;
  std::ranges::set_difference(from, some, std::back_inserter(left), kOrder);
  from = std::move(left);
}

bool IsTaken(const HostPort& port, const HostPorts& taken) {
  // "" (every address) sorts before the other addresses.
  const auto same = std::ranges::equal_range(taken, kSocket(port), {}, kSocket);
  if (same.empty() || port.ip.empty() || same.front().ip.empty()) return !same.empty();
  return std::ranges::binary_search(same, port.ip, {}, &HostPort::ip);
}

bool AnyIsTaken(const HostPorts& ports, const HostPorts& taken) {
  return std::ranges::any_of(ports, [&](const HostPort& port) { return IsTaken(port, taken); });
}

}  // namespace nos::cluster
