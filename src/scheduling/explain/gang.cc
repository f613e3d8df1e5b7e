#include "scheduling/claim_charges.h"
#include "scheduling/explain_gang.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "cluster/instance_search.h"
#include "scheduling/explain/quotas.h"
#include "scheduling/framework.h"
#include "scheduling/gang_starts.h"
#include "scheduling/quota_plugin.h"
#include "scheduling/remedies.h"
#include "scheduling/summary.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using SharedPod = std::shared_ptr<const cluster::Pod>;

void BindWithInstances(const Framework& framework, const SharedPod& pod,
                       const cluster::NodeInfo& node, ClusterSnapshot& snapshot) {
  const std::string name = node.node->meta.name;
  const cluster::ResourceVector requests = cluster::RequestsOf(*pod);
  auto holds = std::make_shared<cluster::Pod>(*pod);
  // Members must not preempt each other.
  holds->priority = std::numeric_limits<int32_t>::max();
  if (framework.partitioned_by() == PartitionedBy::kScheduler && node.gpus.managed &&
      !cluster::HasFreeInstances(node, requests)) {
    holds->promised = cluster::FindInstances(node, requests).value_or(holds->promised);
  }
  (void)snapshot.Bind(std::move(holds), name);  // the node exists
}

struct Trial {
  size_t found = 0;
  ClusterSnapshot at_turn;  // the cluster at the turn of the pod that is explained
  ClusterSnapshot beside;   // the cluster with all members that found a node
  GangRefusals refused = {};
  std::optional<size_t> began = {};                 // index of the first tied member's node
  quota::Amounts charge = {}, charge_at_turn = {};  // of members that found a node
};

const Framework& FrameworkFor(const cluster::Pod& pod, const ExplainInput& input,
                              const Together& together) {
  return together.frameworks != nullptr ? together.frameworks->For(pod) : input.framework;
}

bool IsEnough(const Trial& trial, const Together& together) {
  return together.placed + trial.found >= together.least;
}

// The best feasible node among these; null: none.
const cluster::NodeInfo* Choose(const Framework& framework, const cluster::Pod& pod,
                                const ClusterSnapshot& snapshot, const CycleState& precomputed,
                                std::span<const size_t> among) {
  const Cycle cycle = framework.PreFilter(pod, snapshot);
  std::vector<const cluster::NodeInfo*> fit;
  for (const size_t n : among) {
    const cluster::NodeInfo& node = snapshot.node(n);
    if (framework.Filter(cycle, pod, node).fits()) fit.push_back(&node);
  }
  if (fit.empty()) return nullptr;
  const std::vector<int64_t> scores = framework.Score(cycle, pod, snapshot, fit, precomputed);
  return fit[static_cast<size_t>(std::ranges::max_element(scores) - scores.begin())];
}

void KeepOnly(std::span<const size_t> nodes, ClusterSnapshot& snapshot) {
  std::set<std::string> names;
  for (const size_t n : nodes) names.insert(snapshot.node(n).node->meta.name);
  snapshot.KeepNodes(
      [&](const cluster::NodeInfo& info) { return names.contains(info.node->meta.name); });
}

// Use of the quotas with these members.
std::optional<quota::Balance> BalanceWith(const quota::Amounts& members,
                                          const ExplainInput& input) {
  if (input.balance == nullptr) return std::nullopt;
  quota::Balance balance = *input.balance;
  if (const auto account = balance.AccountOf(input.pod.meta.ns)) balance.Add(*account, members);
  return balance;
}

// Chooses the member's node by the rules of its framework, including quotas. `domain`: the only
// candidates; empty: all nodes.
Decision Decide(const Framework& framework, const cluster::Pod& pod, const Trial& trial,
                const ExplainInput& input, const CycleState& precomputed,
                std::span<const size_t> domain) {
  const auto balance = BalanceWith(trial.charge, input);
  const Admitted admitted =
      balance ? AdmittedBy(*balance, framework, pod, trial.beside) : Admitted();
  if (domain.empty() && admitted.everywhere) {
    return framework.Schedule(pod, trial.beside, precomputed);
  }
  std::vector<size_t> among(domain.begin(), domain.end());
  if (domain.empty()) {
    among = admitted.nodes;
  } else if (!admitted.everywhere) {
    std::erase_if(among, [&](size_t n) { return !std::ranges::binary_search(admitted.nodes, n); });
  }
  Decision decision;
  decision.node = Choose(framework, pod, trial.beside, precomputed, among);
  if (decision.node == nullptr && admitted.refusal) {
    DiagnosisBuilder refused;
    refused.Refuse(QuotaPlugin::VerdictOf(*admitted.refusal), static_cast<int>(trial.beside.size()),
                   framework.quotas());
    decision.diagnosis = std::move(refused).Finish();
  }
  return decision;
}

// Places the members one by one. The first tied member is restricted to `domain`, unless that is
// empty. Members that may fit after others (MayFollow) are retried as long as that places more.
Trial Try(const ExplainInput& input, const Together& together, const CycleState& precomputed,
          const std::set<std::string>& tied, std::span<const size_t> domain) {
  Trial trial{0, input.snapshot, input.snapshot};
  const std::string asked = input.pod.Key();
  std::vector<SharedPod> left = together.waiting;
  while (!left.empty()) {
    const size_t before = trial.found;
    for (const SharedPod& member : left) {
      const std::string key = member->Key();
      if (key == asked) {
        trial.at_turn = trial.beside;
        trial.charge_at_turn = trial.charge;
      }
      const Framework& framework = FrameworkFor(*member, input, together);
      const bool begins = !trial.began && tied.contains(key);
      const bool here_only = begins && !domain.empty();
      if (here_only && key == asked) {
        KeepOnly(domain, trial.at_turn);  // other nodes would not help the gang
      }
      Decision decision = Decide(framework, *member, trial, input, precomputed,
                                 here_only ? domain : std::span<const size_t>());
      if (decision.node == nullptr) {
        trial.refused.emplace_back(member, std::move(decision.diagnosis));
        continue;
      }
      if (begins) trial.began = trial.beside.IndexOf(decision.node->node->meta.name);
      ++trial.found;
      std::set<std::string> counted;
      trial.charge.Add(
          ChargeFor(framework, *member, decision.node->node.get(), trial.beside, counted));
      BindWithInstances(framework, member, *decision.node, trial.beside);
    }
    if (trial.found == before) break;
    left = TakeFollowers(trial.refused);
  }
  return trial;
}

// Tries without a restriction first, then in each domain in which the gang can start. Returns the
// attempt that places the most members.
Trial TryAll(const ExplainInput& input, const Together& together) {
  const CycleState precomputed = input.framework.Precompute(input.snapshot, together.waiting);
  const GangTies ties(together.waiting);
  std::set<std::string> tied;  // pod keys
  for (size_t m = 0; m < together.waiting.size(); ++m) {
    if (ties.IsTied(m)) tied.insert(together.waiting[m]->Key());
  }
  Trial best = Try(input, together, precomputed, tied, {});
  if (IsEnough(best, together) || !ties.near()) return best;
  const GangStarts starts = StartsOf(together.waiting, ties, input.snapshot,
                                     [&](const cluster::Pod& pod) -> const Framework& {
                                       return FrameworkFor(pod, input, together);
                                     });
  const std::optional<size_t> began = best.began;
  int begun = 0;
  for (const std::vector<size_t>& domain : starts.domains) {
    if (began && std::ranges::binary_search(domain, *began)) continue;
    if (begun == kMaxGangStarts) break;
    Trial trial = Try(input, together, precomputed, tied, domain);
    if (!trial.began && !IsEnough(trial, together)) continue;
    ++begun;
    if (trial.found > best.found) best = std::move(trial);
    if (IsEnough(best, together)) break;
  }
  return best;
}

bool IsByQuota(const Diagnosis& diagnosis) {
  return std::ranges::any_of(diagnosis.entries,
                             [](const auto& entry) { return entry.code == codes::kQuota; });
}

}  // namespace

Explanation ExplainTogether(const ExplainInput& input, const Together& together) {
  const size_t there = together.placed + together.waiting.size();
  ExplainInput next = input;
  if (there < together.least) {
    next.gang = GangIncomplete(together.name, there, together.least).message;
    const bool would_do = there + together.gated.size() >= together.least;
    if (!would_do || together.gated.empty()) return Explain(next);
    const cluster::Pod& gated = *together.gated.front();
    next.gang += fmt::format("; {}: {}", gated.Key(), SchedulingGated(gated).message);
    Explanation why = Explain(next);
    Remedy lift = LiftGates(gated);
    why.remedy_code = std::move(lift.code);
    why.remedy = fmt::format("for {}: {}", gated.Key(), lift.text);
    return why;
  }
  const Trial trial = TryAll(input, together);
  const size_t found = together.placed + trial.found;
  if (IsEnough(trial, together) || trial.refused.empty()) {
    const auto balance = BalanceWith(trial.charge_at_turn, input);
    ExplainInput alone{input.framework, input.partitioning, trial.at_turn,
                       input.pod,       input.preemption,   "",
                       false,           input.reader};
    alone.balance = balance ? &*balance : nullptr;
    alone.evicts = input.evicts;
    return Explain(alone);
  }
  // The quota must admit the members that the gang still lacks together.
  const auto& [first, diagnosis] = trial.refused.front();
  const cluster::Pod& refused = *first;
  const bool by_quota = IsByQuota(diagnosis);
  const std::string why =
      fmt::format("{}; {}: {}", GangNotWhole(together.name, found, together.least).message,
                  refused.Key(), by_quota ? "its quota refuses it" : diagnosis.ToString());
  ExplainInput beside{FrameworkFor(refused, input, together),
                      input.partitioning,
                      trial.beside,
                      refused,
                      input.preemption,
                      why,
                      true,
                      input.reader,
                      input.balance};
  beside.charged_with_it = trial.charge;
  beside.evicts = input.evicts;
  std::set<std::string> counted = ChargedClaimsOf(refused);
  for (size_t i = 1; i < std::min(together.least - found, trial.refused.size()); ++i) {
    const cluster::Pod& other = *trial.refused[i].first;
    beside.charged_with_it.Add(
        ChargeFor(FrameworkFor(other, input, together), other, nullptr, trial.beside, counted));
  }
  if (together.reclaim) {
    beside.reclaim = [&] { return together.reclaim(first, trial.beside, beside.charged_with_it); };
  }
  Explanation explanation = Explain(beside);
  explanation.pod = input.pod.Key();
  explanation.demand = DemandText(input.pod);
  explanation.priority = input.pod.priority;
  const bool for_all = explanation.remedy_code == remedies::kRaiseQuota;
  if (refused.Key() != explanation.pod && !for_all) {
    explanation.remedy = fmt::format("for {}: {}", refused.Key(), explanation.remedy);
  }
  return explanation;
}

}  // namespace nos::scheduling
