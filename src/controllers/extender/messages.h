// Messages between kube-scheduler and an extender. Source: k8s.io/kube-scheduler extender/v1. Its
// JSON fields have the names of the Go fields.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "codec/json.h"

namespace nos::controllers {

// ExtenderArgs, for filter and prioritize. kube-scheduler sends node names, or whole nodes with
// nodeCacheCapable: false. The answer has the same form.
struct ExtenderNodes {
  cluster::Pod pod;
  std::vector<std::string> names;
  JsonArray objects;   // empty, or one for each name
  bool whole = false;  // objects were sent
};
// Errors: kInvalid with the cause.
Result<ExtenderNodes> ReadExtenderNodes(std::string_view text);

// ExtenderFilterResult.
struct ExtenderRefusals {
  std::map<std::string, std::string> failed, unresolvable;  // node -> why
};
std::string FilterAnswer(ExtenderNodes nodes, const ExtenderRefusals& refusals);
// Only with the field Error: why there is no result.
std::string FilterError(std::string_view error);

// HostPriorityList: scores from 0 to 10.
std::string PrioritizeAnswer(const std::vector<std::string>& names,
                             const std::vector<int64_t>& scores);

// ExtenderBindingArgs.
struct ExtenderBinding {
  std::string ns, pod, uid, node;
};
Result<ExtenderBinding> ReadExtenderBinding(std::string_view text);
std::string BindAnswer(std::string_view error);

// ExtenderPreemptionArgs: the victims on each node, as uids or whole pods.
struct ExtenderVictims {
  cluster::Pod pod;
  struct Node {
    std::vector<std::string> uids;
    int64_t violations = 0;
  };
  std::map<std::string, Node> nodes;
};
Result<ExtenderVictims> ReadExtenderVictims(std::string_view text);
std::string PreemptAnswer(const std::map<std::string, ExtenderVictims::Node>& nodes);

}  // namespace nos::controllers
