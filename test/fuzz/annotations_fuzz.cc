// Node annotations, one "key=value" per line below the prefix; the node is in MPS mode if the first
// line is "mps". For any input the GPUs are legal, and their status survives a round trip.
#include "cluster/annotations.h"

#include <algorithm>

#include "base/text.h"
#include "target.h"

using namespace nos;           // NOLINT
using namespace nos::cluster;  // NOLINT

namespace {

Node NodeOf(std::string_view text) {
  Node node;
  node.meta.name = "n";
  node.meta.labels = {{std::string(kPartitioningLabel), "mig"},
                      {std::string(kCountLabel), "2"},
                      {std::string(kProductLabel), "NVIDIA-A100-SXM4-40GB"}};
  if (text.starts_with("mps\n")) {
    node.meta.labels[std::string(kPartitioningLabel)] = "mps";
    node.meta.labels[std::string(kMemoryLabel)] = "40960";
  }
  for (const std::string_view line : Split(text, '\n')) {
    const size_t at = line.find('=');
    if (at == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, at);
    const std::string_view prefix = key.starts_with('~') ? kOldPrefix : kPrefix;
    const std::string_view rest = key.starts_with('~') ? key.substr(1) : key;
    node.meta.annotations[std::string(prefix) + std::string(rest)] = line.substr(at + 1);
  }
  return node;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Node node = NodeOf(FuzzText(data, size));
  const NodeGpus gpus = ReadNodeGpus(node, gpu::Catalogue::Builtin());
  for (const Gpu& gpu : gpus.gpus) {
    Require(gpu.All().has_value(), "layouts are legal");
    Require(gpu.Used().has_value(), "used instances are legal");
  }
  const std::vector<TargetLayout> spec = ReadSpec(node, gpus);
  for (const TargetLayout& target : spec) {
    gpu::Occupancy on(*target.model);
    for (const gpu::Placement& placement : target.placements) {
      Require(on.Add(placement), "targets are legal");
    }
  }
  Apply(SpecPatch(node, spec, "1"), node.meta.annotations);
  Apply(StatusPatch(node, gpus.gpus, "1"), node.meta.annotations);
  const NodeGpus again = ReadNodeGpus(node, gpu::Catalogue::Builtin());
  for (const Gpu& gpu : gpus.gpus) {
    const auto same = [&](const Gpu& other) {
      return other.index == gpu.index && other.model == gpu.model &&
             other.instances == gpu.instances;
    };
    Require(std::any_of(again.gpus.begin(), again.gpus.end(), same), "the status is read back");
  }
  Require(StatusPatch(node, gpus.gpus, "1").empty(), "nothing is left to write");
  return 0;
}
