// What kube-scheduler and an extender say to each other, as values.
// Source: k8s.io/kube-scheduler extender/v1, whose fields have no other names in JSON than in Go.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "codec/json.h"

namespace nos::controllers {

// ExtenderArgs, of filter and prioritize. Nodes come by name, or whole when kube-scheduler has
// nodeCacheCapable: false, and go back as they came.
struct ExtenderNodes {
  cluster::Pod pod;
  std::vector<std::string> names;
  JsonArray objects;   // empty, or one for each name
  bool whole = false;  // they are there
};
// Errors: kInvalid, with what is wrong.
Result<ExtenderNodes> ReadExtenderNodes(std::string_view text);

// ExtenderFilterResult: `passes` is parallel to the names.
struct ExtenderRefusals {
  std::map<std::string, std::string> failed, unresolvable;  // node -> why
};
std::string FilterAnswer(ExtenderNodes nodes, const ExtenderRefusals& refusals);
// With its field Error alone, which says why there is no result.
std::string FilterError(std::string_view error);

// HostPriorityList: scores of 0 to 10.
std::string PrioritizeAnswer(const std::vector<std::string>& names,
                             const std::vector<int64_t>& scores);

// ExtenderBindingArgs.
struct ExtenderBinding {
  std::string ns, pod, uid, node;
};
Result<ExtenderBinding> ReadExtenderBinding(std::string_view text);
std::string BindAnswer(std::string_view error);

// ExtenderPreemptionArgs: who would go on which node. Victims come as uids, or whole.
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
