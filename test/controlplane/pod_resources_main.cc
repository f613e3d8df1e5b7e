// Prints a kubelet's report about the devices of its node, as nos reads it:
//
//   nos_pod_resources SOCKET
//   allocatable nvidia.com/mig-1g.5gb MIG-...
//   held team/pod/container nvidia.com/mig-1g.5gb MIG-...
#include <fmt/core.h>

#include "kubelet/pod_resources_client.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: nos_pod_resources SOCKET\n");
    return 2;
  }
  nos::kubelet::PodResourcesClient kubelet({.socket = argv[1]});
  const auto allocatable = kubelet.Allocatable();
  const auto held = kubelet.List();
  for (const nos::Status& status : {allocatable.status(), held.status()}) {
    if (status.ok()) continue;
    fmt::print(stderr, "{}\n", status.message());
    return 1;
  }
  for (const auto& device : *allocatable) {
    fmt::print("allocatable {} {}\n", device.resource, device.device_id);
  }
  for (const auto& held_by : *held) {
    fmt::print("held {}/{}/{} {} {}\n", held_by.ns, held_by.pod, held_by.container,
               held_by.resource, held_by.device_id);
  }
  return 0;
}
