#include "controllers/relocation/marks.h"

#include <utility>

namespace nos::controllers {
namespace {

Result<Json> PatchNode(const cluster::Node& node, JsonObject annotations, Json unschedulable,
                       kube::Client& client) {
  JsonObject metadata = {{"annotations", std::move(annotations)},
                         {"resourceVersion", node.meta.resource_version}};
  JsonObject patch = {{"metadata", std::move(metadata)}};
  patch["spec"] = JsonObject{{"unschedulable", std::move(unschedulable)}};
  return client.Patch(kube::kNodes, "", node.meta.name, kube::PatchType::kMerge, patch);
}

}  // namespace

Result<Json> MarkNode(const cluster::Node& node, const Removal& removal, kube::Client& client) {
  return PatchNode(node, {{kRemoval, WriteRemoval(removal)}}, Json(true), client);
}

Result<Json> MarkNode(const cluster::Node& node, const MovesAway& mark, const MovedById& moved,
                      kube::Client& client) {
  return PatchNode(node, {{kMovesAway, WriteMovesAway(mark)}, {kMovedFrom, WriteMoved(moved)}},
                   Json(true), client);
}

Result<Json> ReopenNode(const cluster::Node& node, kube::Client& client) {
  const auto mark = MovesAwayOf(node);
  const bool cordoned = node.unschedulable && (!mark || mark->was_cordoned);
  return PatchNode(node, {{kMovesAway, nullptr}}, cordoned ? Json(true) : Json(nullptr), client);
}

Result<Json> UnmarkNode(const cluster::Node& node, kube::Client& client) {
  const auto removal = RemovalOf(node);
  if (!removal) return DropMark(node, client);
  const bool cordoned = removal->was_cordoned && node.unschedulable;
  return PatchNode(node, {{kRemoval, nullptr}}, cordoned ? Json(true) : Json(nullptr), client);
}

Result<Json> DropMark(const cluster::Node& node, kube::Client& client) {
  const Json as_it_is = node.unschedulable ? Json(true) : Json(nullptr);
  return PatchNode(node, {{kRemoval, nullptr}}, as_it_is, client);
}

Status DeletePlaceholder(const cluster::ObjectMeta& meta, kube::Client& client) {
  Json options;
  if (!meta.uid.empty()) MakeObject(options, "preconditions")["uid"] = meta.uid;
  return client.Delete(kube::kPods, meta.ns, meta.name, options);
}

}  // namespace nos::controllers
