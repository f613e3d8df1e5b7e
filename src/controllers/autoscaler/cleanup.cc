#include "controllers/cleanup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "cluster/annotations.h"
#include "cluster/placeholder.h"
#include "controllers/autoscaler/demand_kinds.h"
#include "controllers/autoscaler/scaling_signal.h"
#include "controllers/relocations.h"

namespace nos::controllers {
namespace {

constexpr int kTries = 5;  // nodes change often

bool IsGone(const Status& status) { return status.code() == Code::kNotFound; }

// The patches that remove the marks of nos from a node.
struct Change {
  JsonObject patch, status_patch;  // empty: nothing
  std::string done;                // "uncordoned Node gpu-1"
};

// The conditions of others; absent: nos has none.
std::optional<JsonArray> OtherConditions(const Json& node) {
  const Json* conditions = Find(node, "status", "conditions");
  if (conditions == nullptr || !conditions->is_array()) return std::nullopt;
  JsonArray others;
  for (const Json& condition : conditions->get_array()) {
    if (!FindString(condition, "type").starts_with(cluster::kPrefix)) others.push_back(condition);
  }
  if (others.size() == conditions->get_array().size()) return std::nullopt;
  return others;
}

// True if nos has cordoned the node, and it was not cordoned before.
bool IsCordonedByNos(const cluster::Node& node) {
  const auto removal = RemovalOf(node);
  const auto moves = MovesAwayOf(node);
  const bool ours = (removal && !removal->was_cordoned) || (moves && !moves->was_cordoned);
  return node.unschedulable && ours;
}

constexpr std::array<std::string_view, 3> kMarks = {kRemoval, kMovesAway, kMovedFrom};

bool IsTouched(const cluster::Node& node) {
  return std::ranges::any_of(
             kMarks, [&](std::string_view mark) { return node.meta.annotations.contains(mark); }) ||
         std::ranges::any_of(node.conditions, [](const cluster::Condition& condition) {
           return condition.type.starts_with(cluster::kPrefix);
         });
}

Change ChangeOf(const Json& json, const cluster::Node& node) {
  Change change;
  const JsonObject metadata = {{"resourceVersion", node.meta.resource_version}};
  JsonObject annotations;
  for (const std::string_view mark : kMarks) {
    if (node.meta.annotations.contains(mark)) annotations[mark] = nullptr;
  }
  std::string done;
  if (!annotations.empty()) {
    done = "removed marks";
    JsonObject with = metadata;
    with["annotations"] = std::move(annotations);
    change.patch["metadata"] = std::move(with);
    if (IsCordonedByNos(node)) {
      change.patch["spec"] = JsonObject{{"unschedulable", nullptr}};
      done += " and cordon";
    }
  }
  if (auto others = OtherConditions(json)) {
    change.status_patch["metadata"] = metadata;
    change.status_patch["status"] = JsonObject{{"conditions", *std::move(others)}};
    done += done.empty() ? "removed conditions" : " and conditions";
  }
  if (!done.empty()) change.done = fmt::format("{} of Node {}", done, node.meta.name);
  return change;
}

class CleanUpRun {
 public:
  CleanUpRun(const CleanUpOptions& options, kube::Client& client,
             const std::function<void(const std::string&)>& report)
      : options_(options), client_(client), report_(report) {}

  Status All() {
    for (const std::string& ns : options_.namespaces) {
      DeleteLabelled(kube::kPods, ns, cluster::kPlaceholder);
      for (const kube::Resource* kind : {&kube::kPods, &kProvisioningRequests, &kPodTemplates}) {
        DeleteLabelled(*kind, ns, kDemandOf);
      }
    }
    CleanNodes();
    return std::move(first_);
  }

 private:
  void Keep(const Status& status, const std::string& what) {
    if (!status.ok() && first_.ok()) first_ = status.Within(what);
  }

  // `done`: begins with a verb in the past.
  void Report(const std::string& done) {
    if (!options_.dry_run) return report_(done);
    constexpr std::string_view kRemoved = "removed ", kDeleted = "deleted ";
    const bool deletes = done.starts_with(kDeleted);
    const size_t verb = deletes ? kDeleted.size() : kRemoved.size();
    report_(fmt::format("would {} {}", deletes ? "delete" : "remove", done.substr(verb)));
  }

  void DeleteLabelled(const kube::Resource& kind, const std::string& ns, std::string_view label) {
    const kube::ListOptions options{
        .label_selector = std::string(label), .field_selector = {}, .resource_version = {}};
    const auto list = client_.List(kind, ns, options);
    if (!list.ok()) {  // not found: the cluster does not have this kind
      if (!IsGone(list.status())) Keep(list.status(), fmt::format("list {}", kind.plural));
      return;
    }
    for (const Json& item : list->items) {
      const std::string name(FindString(item, "metadata", "name"));
      // The answer is checked too: a server that ignores the selector must not cost other pods.
      const bool ours = FindString(item, "metadata", "namespace") == ns &&
                        Find(item, "metadata", "labels", label) != nullptr;
      if (!ours || Find(item, "metadata", "deletionTimestamp") != nullptr) continue;
      const std::string what = fmt::format("{} {}/{}", kind.kind, ns, name);
      if (!options_.dry_run) {
        const Json precondition = {
            {"preconditions", {{"uid", FindString(item, "metadata", "uid")}}}};
        const Status deleted = client_.Delete(kind, ns, name, precondition);
        if (IsGone(deleted)) continue;
        Keep(deleted, "delete " + what);
        if (!deleted.ok()) continue;
      }
      Report("deleted " + what);
    }
  }

  void CleanNodes() {
    // Nodes are large: only the names of those to be changed are kept.
    std::vector<std::string> names;
    Status unread;
    const auto begin = [&] { names.clear(); };
    const auto visit = [&](JsonSource json) {
      cluster::Node node;
      const Status read = cluster::ReadNode(json, node);
      if (!read.ok()) unread = read;
      if (read.ok() && IsTouched(node)) names.push_back(node.meta.name);
    };
    Keep(client_.ListEach(kube::kNodes, "", {}, begin, visit).status(), "list nodes");
    Keep(unread, "read a node");
    for (const std::string& name : names) {
      const Status cleaned = CleanNode(name);
      if (!IsGone(cleaned)) Keep(cleaned, "clean node " + name);
    }
  }

  Status CleanNode(const std::string& name) {
    for (int tries = 1;; ++tries) {
      NOS_ASSIGN(const Json node, client_.Get(kube::kNodes, "", name));
      NOS_ASSIGN(const cluster::Node decoded, cluster::DecodeNode(node));
      const Change change = ChangeOf(node, decoded);
      if (change.done.empty()) return Status::Ok();
      const Status written = options_.dry_run ? Status::Ok() : Write(name, change);
      if (written.ok()) Report(change.done);
      if (written.code() != Code::kConflict || tries == kTries) return written;
    }
  }

  // The status first: its patch has the resourceVersion of before.
  Status Write(const std::string& name, const Change& change) {
    JsonObject patch = change.patch;
    if (!change.status_patch.empty()) {
      NOS_ASSIGN(const Json written, client_.Patch(kube::kNodes, "", name, kube::PatchType::kMerge,
                                                   change.status_patch, "status"));
      if (patch.empty()) return Status::Ok();
      patch["metadata"].get_object()["resourceVersion"] =
          FindString(written, "metadata", "resourceVersion");
    }
    return client_.Patch(kube::kNodes, "", name, kube::PatchType::kMerge, patch).status();
  }

  const CleanUpOptions& options_;
  kube::Client& client_;
  const std::function<void(const std::string&)>& report_;
  Status first_;
};

}  // namespace

Status CleanUp(const CleanUpOptions& options, kube::Client& client,
               const std::function<void(const std::string& change)>& report) {
  return CleanUpRun(options, client, report).All();
}

}  // namespace nos::controllers
