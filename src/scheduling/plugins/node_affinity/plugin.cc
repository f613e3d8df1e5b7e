#include "scheduling/plugins/node_affinity/plugin.h"

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
  return Verdict::Unresolvable(codes::kNodeAffinityMismatch,
                               "node(s) didn't match Pod's node affinity/selector");
}

// Node names that all matchFields requirements of the term allow. Absent: the term names no nodes.
std::optional<std::set<std::string>> NamedNodes(const cluster::NodeSelectorTerm& term) {
  std::optional<std::set<std::string>> names;
  for (const cluster::SelectorRequirement& field : term.match_fields) {
    if (field.key != "metadata.name" || field.op != "In") continue;
    std::set<std::string> these(field.values.begin(), field.values.end());
    if (names) std::erase_if(these, [&](const auto& name) { return !names->contains(name); });
    names = std::move(these);
  }
  return names;
}

int64_t WeightOf(const std::vector<cluster::PreferredNodeTerm>& terms, const cluster::Node& node) {
  int64_t sum = 0;
  for (const cluster::PreferredNodeTerm& preferred : terms) {
    if (cluster::Matches(preferred.term, node)) sum += preferred.weight;
  }
  return sum;
}

}  // namespace

bool NodeAffinity::Adds(const cluster::Node& node) const {
  return !added_.required || cluster::MatchesAny(*added_.required, node);
}

bool NodeAffinity::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  const bool node_event = event.kind == ClusterEvent::Kind::kNodeAdded ||
                          event.kind == ClusterEvent::Kind::kNodeChanged;
  const auto matches = [&](const cluster::Node& node) {
    return Adds(node) && cluster::SelectsNode(pod, node);
  };
  return node_event && matches(*event.node) &&
         (event.node_before == nullptr || !matches(*event.node_before));
}

bool NodeAffinity::Concerns(const cluster::Pod& pod) const {
  return added_.required || !pod.node_selector.empty() || RequiredTerms(pod) != nullptr;
}

PreFilterPlugin::Outcome NodeAffinity::PreFilter(const cluster::Pod& pod,
                                                 const cluster::ClusterSnapshot&,
                                                 CycleState&) const {
  Outcome outcome;
  outcome.skip = !Concerns(pod);
  const Terms* required = RequiredTerms(pod);
  if (required == nullptr || required->empty()) return outcome;
  std::set<std::string> names;
  for (const cluster::NodeSelectorTerm& term : *required) {
    auto named = NamedNodes(term);
    if (!named) return outcome;
    names.merge(*named);
  }
  if (names.empty()) {
    outcome.verdict =
        Verdict::Unresolvable(codes::kNodeAffinityMismatch, "pod affinity terms conflict");
    return outcome;
  }
  outcome.nodes = std::move(names);
  outcome.elsewhere = Verdict::Unresolvable(codes::kNodeAffinityMismatch,
                                            "node(s) didn't satisfy plugin(s) [NodeAffinity]");
  return outcome;
}

Verdict NodeAffinity::Filter(const CycleState&, const cluster::Pod& pod,
                             const cluster::NodeInfo& node) const {
  if (!Adds(*node.node)) {
    return Verdict::Unresolvable(codes::kAddedAffinityMismatch,
                                 "node(s) didn't match scheduler-enforced node affinity");
  }
  return cluster::SelectsNode(pod, *node.node) ? Verdict::Fits() : Mismatch();
}

bool NodeAffinity::PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot&, Nodes,
                            CycleState&) const {
  return !added_.preferred.empty() || (pod.node_affinity && !pod.node_affinity->preferred.empty());
}

int64_t NodeAffinity::Score(const CycleState&, const cluster::Pod& pod,
                            const cluster::NodeInfo& node) const {
  const int64_t added = WeightOf(added_.preferred, *node.node);
  return pod.node_affinity ? added + WeightOf(pod.node_affinity->preferred, *node.node) : added;
}

}  // namespace nos::scheduling
