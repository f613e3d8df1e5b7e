// Pods and nodes as sent by an API server, decoded both directly from text and through a tree. The
// results must be equal, and neither decoder may accept invalid JSON.
#include "cluster/objects.h"
#include "codec/duplicate_keys.h"
#include "codec/json.h"
#include "target.h"

using namespace nos;           // NOLINT
using namespace nos::cluster;  // NOLINT

namespace {

void Compare(const ObjectMeta& text, const ObjectMeta& tree) {
  Require(text.name == tree.name && text.ns == tree.ns && text.uid == tree.uid, "the same object");
  Require(text.labels == tree.labels && text.annotations == tree.annotations, "the same words");
  Require(text.resource_version == tree.resource_version, "the same version");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(FuzzText(data, size));
  Pod pod, pod_of_tree;
  Node node, node_of_tree;
  const bool is_pod = ReadPod(text, pod).ok();
  const bool is_node = ReadNode(text, node).ok();
  const Result<Json> json = ParseJson(text);
  // A tree has a depth limit, skipped text has none. The meaning of a duplicate key is undefined,
  // and no API server sends one.
  if (!json.ok() || !FindDuplicateKeys(text, 1).empty() || HasTinyNumbers(text)) return 0;
  Require(ReadPod(*json, pod_of_tree).ok() == is_pod, "both are pods or none");
  Require(ReadNode(*json, node_of_tree).ok() == is_node, "both are nodes or none");
  if (is_pod) {
    Compare(pod.meta, pod_of_tree.meta);
    Require(PodRequests(pod) == PodRequests(pod_of_tree), "the same requests");
    Require(pod.node_name == pod_of_tree.node_name && pod.priority == pod_of_tree.priority &&
                pod.phase == pod_of_tree.phase,
            "the same pod");
  }
  if (is_node) {
    Compare(node.meta, node_of_tree.meta);
    Require(node.allocatable == node_of_tree.allocatable, "the same resources");
    Require(node.taints.size() == node_of_tree.taints.size(), "the same taints");
  }
  return 0;
}
