#include "scheduling/plugins/node_affinity/node_affinity.h"

#include "cluster/selectors.h"

namespace nos::scheduling {
namespace {

using Terms = std::vector<cluster::NodeSelectorTerm>;

const Terms* RequiredTerms(const cluster::Pod& pod) {
  if (!pod.node_affinity.has_value()) return nullptr;
  const std::optional<Terms>& required = pod.node_affinity->required;
  return required.has_value() ? &*required : nullptr;
}

Verdict Mismatch() {
  return Verdict::Unresolvable("NodeAffinityMismatch",
                               "node(s) didn't match Pod's node affinity/selector");
}

// The node that the term names, if it names one.
const std::string* NamedNode(const cluster::NodeSelectorTerm& term) {
  for (const cluster::SelectorRequirement& field : term.match_fields) {
    if (field.key == "metadata.name" && field.op == "In" && field.values.size() == 1) {
      return &field.values.front();
    }
  }
  return nullptr;
}

}  // namespace

bool NodeAffinity::Concerns(const cluster::Pod& pod) const {
  return !pod.node_selector.empty() || RequiredTerms(pod) != nullptr;
}

PreFilterPlugin::Outcome NodeAffinity::PreFilter(const cluster::Pod& pod,
                                                 const cluster::ClusterSnapshot&,
                                                 CycleState&) const {
  const Terms* required = RequiredTerms(pod);
  if (required == nullptr) return {};
  std::set<std::string> names;
  for (const cluster::NodeSelectorTerm& term : *required) {
    const std::string* name = NamedNode(term);
    if (name == nullptr) return {};
    names.insert(*name);
  }
  return {Verdict::Fits(), std::move(names), Mismatch()};
}

Verdict NodeAffinity::Filter(const CycleState&, const cluster::Pod& pod,
                             const cluster::NodeInfo& node) const {
  return cluster::SelectsNode(pod, *node.node) ? Verdict::Fits() : Mismatch();
}

int64_t NodeAffinity::Score(const CycleState&, const cluster::Pod& pod,
                            const cluster::NodeInfo& node) const {
  if (!pod.node_affinity.has_value()) return 0;
  int64_t sum = 0;
  for (const cluster::PreferredNodeTerm& preferred : pod.node_affinity->preferred) {
    if (cluster::Matches(preferred.term, *node.node)) sum += preferred.weight;
  }
  return sum;
}

}  // namespace nos::scheduling
