// YAML, JSON and objects: refused with the file's name, or usable up to a snapshot.
#include "cluster/objects.h"

#include <memory>

#include "cluster/snapshot.h"
#include "target.h"

using namespace nos;           // NOLINT
using namespace nos::cluster;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<Objects> objects = ReadObjects(FuzzText(data, size), "input");
  if (!objects.ok()) {
    Require(objects.status().code() == Code::kInvalid, "refused as invalid");
    Require(objects.status().message().starts_with("input: "), "errors name the file");
    return 0;
  }
  std::vector<std::shared_ptr<const Node>> nodes;
  std::vector<std::shared_ptr<const Pod>> pods;
  for (const Node& node : objects->nodes) nodes.push_back(std::make_shared<const Node>(node));
  for (const Pod& pod : objects->pods) pods.push_back(std::make_shared<const Pod>(pod));
  const auto snapshot = ClusterSnapshot::Build(nodes, pods, gpu::Catalogue::Builtin());
  for (const auto& node : nodes) Require(snapshot.Find(node->meta.name) != nullptr, "found");
  for (const auto& pod : pods) Require(RequestsOf(*pod).Get(kPods) == 1, "a pod is one pod");
  return 0;
}
