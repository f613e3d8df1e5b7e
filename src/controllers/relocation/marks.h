// Writes the marks that relocations leave on nodes, together with the cordon, and deletes
// placeholders.
//
//   NOS_ASSIGN(const Json node, MarkNode(*node, removal, client));   // cordoned and marked
//   NOS_RETURN_IF_ERROR(UnmarkNode(*node, client).status());         // as it was before
//
// The functions for nodes return the node after the patch. Their errors: kConflict if `node` has
// changed since it was read, others as reported by the API server.
#pragma once

#include "cluster/objects.h"
#include "controllers/relocations.h"
#include "kube/client.h"

namespace nos::controllers {

// Writes or removes the mark of a node to be removed.
Result<Json> MarkNode(const cluster::Node& node, const Removal& removal, kube::Client& client);
Result<Json> UnmarkNode(const cluster::Node& node, kube::Client& client);
// Removes only the mark: it is unknown who cordoned the node.
Result<Json> DropMark(const cluster::Node& node, kube::Client& client);
// Writes the mark of a node that pods move away from. `moved`: all moves of the last hour,
// including the current one.
Result<Json> MarkNode(const cluster::Node& node, const MovesAway& mark, const MovedById& moved,
                      kube::Client& client);
Result<Json> ReopenNode(const cluster::Node& node, kube::Client& client);
// Deletes the pod only if it has this uid.
Status DeletePlaceholder(const cluster::ObjectMeta& meta, kube::Client& client);

// The object was deleted or replaced: a watch event will show it.
inline bool IsGoneOrChanged(const Status& status) {
  return status.code() == Code::kNotFound || status.code() == Code::kConflict;
}

}  // namespace nos::controllers
