#include "scheduling/packing/node.h"

#include <algorithm>

namespace nos::scheduling::packing {

bool Fits(const Node& node, const PodKind& kind) {
  if (node.cpu_milli < kind.cpu_milli || node.memory_mib < kind.memory_mib || node.pods < 1) {
    return false;
  }
  if (kind.gpus == 0) return true;
  if ((kind.models >> node.model & 1) == 0) return false;
  int room = 0;
  for (const int left : node.gpu_milli) room += left >= kind.milli ? 1 : 0;
  return room >= kind.gpus;
}

std::vector<int> FirstDevices(const Node& node, const PodKind& kind) {
  std::vector<int> devices;
  for (int i = 0; static_cast<int>(devices.size()) < kind.gpus; ++i) {
    if (node.gpu_milli[i] >= kind.milli) devices.push_back(i);
  }
  return devices;
}

void Take(Node& node, const PodKind& kind, const std::vector<int>& devices) {
  node.cpu_milli -= kind.cpu_milli;
  node.memory_mib -= kind.memory_mib;
  --node.pods;
  for (const int device : devices) node.gpu_milli[device] -= kind.milli;
}

void Return(Node& node, const PodKind& kind, const std::vector<int>& devices) {
  node.cpu_milli += kind.cpu_milli;
  node.memory_mib += kind.memory_mib;
  ++node.pods;
  for (const int device : devices) node.gpu_milli[device] += kind.milli;
}

}  // namespace nos::scheduling::packing
