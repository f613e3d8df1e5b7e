#include "scheduling/plugins/inter_pod_affinity/plugin.h"

#include <algorithm>

#include "scheduling/framework/copy_on_write.h"
#include "scheduling/framework/domain_sums.h"
#include "scheduling/plugins/inter_pod_affinity/terms.h"

namespace nos::scheduling {
namespace {

using cluster::NodeInfo;
using cluster::Pod;
using cluster::PodAffinityTerm;

// Required terms of the pod, compiled; constant while other pods come and go.
struct Required {
  std::vector<TermMatcher> near, far;
  std::vector<std::string> near_keys;  // distinct, in the order of `near`
  bool near_itself = false;            // the pod matches all of its own `near` terms
  cluster::StringMap namespace_labels;
};

// Numbers of pods by domain.
struct Counts {
  DomainSums near;      // pods that match all of Required::near
  DomainSums far;       // pods per matching term of Required::far
  DomainSums repelled;  // required anti-affinity terms of running pods that match the pod
};

struct FilterState {
  std::shared_ptr<const Required> required;
  CopyOnWrite<Counts> counts;
};

// Preferred terms of the pod, compiled, and sums of weights by domain.
struct Preferred {
  struct Term {
    TermMatcher matcher;
    int64_t weight;  // negative for anti-affinity
  };
  std::vector<Term> terms;
  cluster::StringMap namespace_labels;
};
struct ScoreState {
  std::shared_ptr<const Preferred> preferred;
  CopyOnWrite<DomainSums> sums;
};

bool MatchesAll(const std::vector<TermMatcher>& terms, const Pod& other) {
  return !terms.empty() &&
         std::ranges::all_of(terms, [&](const TermMatcher& t) { return t.Matches(other); });
}

std::vector<TermMatcher> MatchersOf(const std::vector<PodAffinityTerm>& terms, const Pod& pod,
                                    const cluster::ClusterContext& context) {
  std::vector<TermMatcher> matchers;
  matchers.reserve(terms.size());
  for (const PodAffinityTerm& term : terms) matchers.emplace_back(term, pod, context);
  return matchers;
}

Required RequiredOf(const Pod& pod, const cluster::ClusterContext& context) {
  Required required{MatchersOf(pod.pod_affinity.required, pod, context),
                    MatchersOf(pod.pod_anti_affinity.required, pod, context),
                    {},
                    false,
                    NamespaceLabels(context, pod.meta.ns)};
  for (const TermMatcher& term : required.near) {
    std::vector<std::string>& keys = required.near_keys;
    if (std::ranges::find(keys, term.key()) == keys.end()) keys.push_back(term.key());
  }
  required.near_itself = MatchesAll(required.near, pod);
  return required;
}

// Calls add(member of Counts, topology key) for each count that `other` contributes to.
template <typename Add>
void ForEachCount(const Required& required, const Pod& pod, const Pod& other, Add add) {
  for (const PodAffinityTerm& term : other.pod_anti_affinity.required) {
    if (Selects(term, other, pod, required.namespace_labels)) {
      add(&Counts::repelled, term.topology_key);
    }
  }
  if (MatchesAll(required.near, other)) {
    for (const std::string& key : required.near_keys) add(&Counts::near, key);
  }
  for (const TermMatcher& term : required.far) {
    if (term.Matches(other)) add(&Counts::far, term.key());
  }
}

bool RequiresNothing(const Required& required) {
  return required.near.empty() && required.far.empty();
}

// Every domain of the node must have a matching pod. If no pod matches anywhere and the pod matches
// itself, it is the first of its group and may start in any domain.
bool IsNear(const FilterState& state, const cluster::Node& node) {
  bool all = true;
  for (const std::string& key : state.required->near_keys) {
    const std::string* value = LabelOf(node, key);
    if (value == nullptr) return false;
    all = all && state.counts->near.At(key, *value) > 0;
  }
  return all || (state.counts->near.empty() && state.required->near_itself);
}

Preferred PreferredOf(const Pod& pod, const cluster::ClusterContext& context) {
  Preferred preferred{{}, NamespaceLabels(context, pod.meta.ns)};
  const auto add = [&](const std::vector<cluster::PreferredPodTerm>& terms, int64_t sign) {
    for (const cluster::PreferredPodTerm& term : terms) {
      preferred.terms.push_back({TermMatcher(term.term, pod, context), sign * term.weight});
    }
  };
  add(pod.pod_affinity.preferred, 1);
  add(pod.pod_anti_affinity.preferred, -1);
  return preferred;
}

bool HasPreferred(const Pod& pod) {
  return !pod.pod_affinity.preferred.empty() || !pod.pod_anti_affinity.preferred.empty();
}

// Calls add(topology key, weight) for each term that `other` affects.
template <typename Add>
void ForEachWeight(const Preferred& preferred, int64_t hard_weight, const Pod& pod,
                   const Pod& other, Add add) {
  for (const Preferred::Term& term : preferred.terms) {
    if (term.matcher.Matches(other)) add(term.matcher.key(), term.weight);
  }
  const auto add_if_meant = [&](const PodAffinityTerm& term, int64_t weight) {
    if (Selects(term, other, pod, preferred.namespace_labels)) {
      add(term.topology_key, weight);
    }
  };
  if (hard_weight > 0) {
    for (const PodAffinityTerm& term : other.pod_affinity.required) add_if_meant(term, hard_weight);
  }
  for (const auto& [weight, term] : other.pod_affinity.preferred) add_if_meant(term, weight);
  for (const auto& [weight, term] : other.pod_anti_affinity.preferred) {
    add_if_meant(term, -int64_t{weight});
  }
}

}  // namespace

PreFilterPlugin::Outcome InterPodAffinity::PreFilter(const Pod& pod,
                                                     const cluster::ClusterSnapshot& snapshot,
                                                     CycleState& state) const {
  Required required = RequiredOf(pod, snapshot.context());
  const bool nothing = RequiresNothing(required);
  Counts counts;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& node = snapshot.node(i);
    if (nothing && node.with_required_anti_affinity == 0) continue;
    for (const std::shared_ptr<const Pod>& other : node.pods) {
      ForEachCount(required, pod, *other, [&](DomainSums Counts::* sums, std::string_view key) {
        (counts.*sums).Add(*node.node, key, 1);
      });
    }
  }
  Outcome outcome;
  outcome.skip = nothing && counts.repelled.empty();
  state.Set(FilterState{std::make_shared<const Required>(std::move(required)),
                        CopyOnWrite(std::move(counts))});
  return outcome;
}

bool InterPodAffinity::Update(const Pod& pod, const Pod& other, bool came, const NodeInfo& node,
                              CycleState& state, TouchDomain touch) const {
  auto* left = state.Get<FilterState>();
  if (left == nullptr) return false;
  const bool was_alone = left->counts->near.empty(), was_free = left->counts->repelled.empty();
  ForEachCount(*left->required, pod, other, [&](DomainSums Counts::* sums, std::string_view key) {
    const auto change = (left->counts.Change().*sums).Add(*node.node, key, came ? 1 : -1);
    if (change && (change->before == 0 || change->after == 0)) touch(key, change->value);
  });
  if (left->required->near_itself && was_alone != left->counts->near.empty()) return false;
  return !RequiresNothing(*left->required) || !was_free || left->counts->repelled.empty();
}

Verdict InterPodAffinity::Filter(const CycleState& state, const Pod&, const NodeInfo& node) const {
  const auto* left = state.Get<FilterState>();
  if (left == nullptr) return Verdict::Fits();
  if (!IsNear(*left, *node.node)) {
    return Verdict::Unresolvable(codes::kPodAffinityMismatch,
                                 "node(s) didn't match pod affinity rules");
  }
  if (left->counts->far.AnyPositive(*node.node)) {
    return Verdict::Unschedulable(codes::kPodAntiAffinity,
                                  "node(s) didn't match pod anti-affinity rules");
  }
  if (left->counts->repelled.AnyPositive(*node.node)) {
    return Verdict::Unschedulable(codes::kExistingPodsAntiAffinity,
                                  "node(s) didn't satisfy existing pods anti-affinity rules");
  }
  return Verdict::Fits();
}

bool InterPodAffinity::PreScore(const Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes,
                                CycleState& state) const {
  const bool prefers = HasPreferred(pod);
  if (options_.ignore_preferred_terms_of_existing_pods && !prefers) return false;
  auto preferred = std::make_shared<const Preferred>(PreferredOf(pod, snapshot.context()));
  DomainSums sums;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& node = snapshot.node(i);
    if (!prefers && node.with_affinity == 0) continue;
    for (const std::shared_ptr<const Pod>& other : node.pods) {
      ForEachWeight(
          *preferred, options_.hard_pod_affinity_weight, pod, *other,
          [&](std::string_view key, int64_t weight) { sums.Add(*node.node, key, weight); });
    }
  }
  const bool alike = sums.empty();
  state.Set(ScoreState{std::move(preferred), CopyOnWrite(std::move(sums))});
  return !alike;
}

bool InterPodAffinity::UpdateScore(const Pod& pod, const Pod& other, bool came,
                                   const NodeInfo& node, CycleState& state,
                                   TouchDomain touch) const {
  auto* left = state.Get<ScoreState>();
  if (left == nullptr) return options_.ignore_preferred_terms_of_existing_pods;
  const bool alike = left->sums->empty();
  ForEachWeight(*left->preferred, options_.hard_pod_affinity_weight, pod, other,
                [&](std::string_view key, int64_t weight) {
                  const auto change =
                      left->sums.Change().Add(*node.node, key, came ? weight : -weight);
                  if (change) touch(key, change->value);
                });
  return !alike || left->sums->empty();
}

int64_t InterPodAffinity::Score(const CycleState& state, const Pod&, const NodeInfo& node) const {
  const auto* left = state.Get<ScoreState>();
  return left == nullptr ? 0 : left->sums->Total(*node.node);
}

int64_t InterPodAffinity::Normalized(int64_t score, int64_t lowest, int64_t highest) const {
  if (highest <= lowest) return 0;
  return static_cast<int64_t>(
      kMaxScore * (static_cast<double>(score - lowest) / static_cast<double>(highest - lowest)));
}

}  // namespace nos::scheduling
