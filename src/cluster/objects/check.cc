#include "cluster/objects/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace nos::cluster {
namespace {

using Names = std::vector<std::string_view>;

Status Wrong(std::string_view path, std::string_view what) {
  return Invalid(fmt::format("{}: {}", path, what));
}

Status CheckOneOf(const std::string& path, std::string_view value, const Names& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return Status::Ok();
  if (value.empty()) return Wrong(path, fmt::format("is missing: {}", fmt::join(allowed, ", ")));
  return Wrong(path, fmt::format("'{}' is none of {}", value, fmt::join(allowed, ", ")));
}

Status CheckEffect(const std::string& path, std::string_view effect) {
  return CheckOneOf(path, effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"});
}

// Calls `check(item, path)` for every item until one fails.
template <typename T, typename Function>
Status CheckEach(const std::vector<T>& items, const std::string& path, Function check) {
  for (size_t i = 0; i < items.size(); ++i) {
    NOS_RETURN_IF_ERROR(check(items[i], fmt::format("{}[{}]", path, i)));
  }
  return Status::Ok();
}

Status CheckToleration(const Toleration& toleration, const std::string& path) {
  const bool exists = toleration.op == "Exists";
  if (!toleration.op.empty()) {
    NOS_RETURN_IF_ERROR(
        CheckOneOf(path + ".operator", toleration.op, {"Exists", "Equal", "Lt", "Gt"}));
  }
  if (!toleration.effect.empty()) {
    NOS_RETURN_IF_ERROR(CheckEffect(path + ".effect", toleration.effect));
  }
  if (toleration.key.empty() && !exists) {
    return Wrong(path + ".operator", "must be Exists when there is no key");
  }
  if (exists && !toleration.value.empty()) {
    return Wrong(path + ".value", "must be empty when the operator is Exists");
  }
  return Status::Ok();
}

Status CheckTaint(const Taint& taint, const std::string& path) {
  if (taint.key.empty()) return Wrong(path + ".key", "is missing");
  return CheckEffect(path + ".effect", taint.effect);
}

Status CheckExpression(const SelectorRequirement& requirement, const std::string& path) {
  const std::string& op = requirement.op;
  const std::vector<std::string>& values = requirement.values;
  if (requirement.key.empty()) return Wrong(path + ".key", "is missing");
  NOS_RETURN_IF_ERROR(
      CheckOneOf(path + ".operator", op, {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}));
  if (op == "In" || op == "NotIn") {
    if (values.empty()) return Wrong(path + ".values", fmt::format("must not be empty for {}", op));
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) return Wrong(path + ".values", fmt::format("must be empty for {}", op));
  } else if (values.size() != 1) {  // the server accepts a value that is not a number: it matches
                                    // nothing
    return Wrong(path + ".values", fmt::format("must be exactly one for {}", op));
  }
  return Status::Ok();
}

Status CheckFieldMatch(const SelectorRequirement& requirement, const std::string& path) {
  NOS_RETURN_IF_ERROR(CheckOneOf(path + ".key", requirement.key, {"metadata.name"}));
  NOS_RETURN_IF_ERROR(CheckOneOf(path + ".operator", requirement.op, {"In", "NotIn"}));
  if (requirement.values.size() == 1) return Status::Ok();
  return Wrong(path + ".values", "must be exactly one name");
}

Status CheckTerm(const NodeSelectorTerm& term, const std::string& path) {
  NOS_RETURN_IF_ERROR(
      CheckEach(term.match_expressions, path + ".matchExpressions", CheckExpression));
  return CheckEach(term.match_fields, path + ".matchFields", CheckFieldMatch);
}

Status CheckPreferred(const PreferredNodeTerm& preferred, const std::string& path) {
  if (preferred.weight < 1 || preferred.weight > 100) {
    return Wrong(path + ".weight", "must be from 1 to 100");
  }
  return CheckTerm(preferred.term, path + ".preference");
}

Status CheckAffinity(const NodeAffinity& affinity) {
  const std::string path = "spec.affinity.nodeAffinity";
  if (affinity.required) {
    const std::string terms =
        path + ".requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    if (affinity.required->empty()) return Wrong(terms, "must hold at least one term");
    NOS_RETURN_IF_ERROR(CheckEach(*affinity.required, terms, CheckTerm));
  }
  return CheckEach(affinity.preferred, path + ".preferredDuringSchedulingIgnoredDuringExecution",
                   CheckPreferred);
}

// Extended resources such as devices: the API server accepts only integers. Source:
// k8s.io/kubernetes pkg/apis/core helper.IsIntegerResourceName,
// validation.ValidateResourceQuantityValue.
bool IsExtended(std::string_view resource) {
  return resource.find('/') != std::string_view::npos &&
         resource.find("kubernetes.io/") == std::string_view::npos;
}

Status CheckWhole(const ResourceList& list, const std::string& path) {
  for (const auto& [name, quantity] : list) {
    if (!IsExtended(name) || quantity.IsWhole()) continue;
    return Wrong(fmt::format("{}[{}]", path, name),
                 fmt::format("'{}' must be a whole number", quantity.ToString()));
  }
  return Status::Ok();
}

Status CheckContainer(const Container& container, const std::string& path) {
  NOS_RETURN_IF_ERROR(CheckWhole(container.requests, path + ".resources.requests"));
  return CheckWhole(container.limits, path + ".resources.limits");
}

}  // namespace

Status CheckPod(const Pod& pod) {
  if (pod.containers.empty()) return Wrong("spec.containers", "must hold at least one container");
  NOS_RETURN_IF_ERROR(CheckEach(pod.containers, "spec.containers", CheckContainer));
  NOS_RETURN_IF_ERROR(CheckEach(pod.init_containers, "spec.initContainers", CheckContainer));
  NOS_RETURN_IF_ERROR(CheckWhole(pod.overhead, "spec.overhead"));
  NOS_RETURN_IF_ERROR(CheckEach(pod.tolerations, "spec.tolerations", CheckToleration));
  return pod.node_affinity ? CheckAffinity(*pod.node_affinity) : Status::Ok();
}

Status CheckNode(const Node& node) {
  NOS_RETURN_IF_ERROR(CheckWhole(node.capacity, "status.capacity"));
  NOS_RETURN_IF_ERROR(CheckWhole(node.allocatable, "status.allocatable"));
  return CheckEach(node.taints, "spec.taints", CheckTaint);
}

}  // namespace nos::cluster
