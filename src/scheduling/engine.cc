#include "scheduling/engine.h"

#include <algorithm>

#include "scheduling/diagnosis.h"
#include "scheduling/engine/kind_table.h"
#include "scheduling/engine/promises.h"
#include "scheduling/framework.h"
#include "scheduling/quota_plugin.h"

namespace nos::scheduling {

Engine::Engine(const gpu::Catalogue& catalogue)
    : cache_(catalogue, charges_, tables_),
      evicted_(cache_, charges_),
      nominator_(cache_, charges_, evicted_),
      admission_(cache_, charges_, evicted_, nominator_) {}

void Engine::SetNode(std::shared_ptr<const cluster::Node> node) {
  const std::string name = node->meta.name;
  if (cache_.SetNode(std::move(node))) nominator_.OnChargesChange(name);
}

void Engine::RemoveNode(const std::string& name) {
  if (cache_.RemoveNode(name)) nominator_.OnChargesChange(name);
}

bool Engine::IsAssumed(const std::string& key) const {
  const PlacedPod* placed = cache_.FindPlaced(key);
  return placed != nullptr && placed->assumed;
}

void Engine::Nominate(const Pod& pod, const std::string& node, bool by_others) {
  const Nominator::Effect effect = nominator_.Set(pod, node, by_others);
  if (effect != Nominator::Effect::kNone) ++changes_;
  if (effect == Nominator::Effect::kFrees) ++openings_;
}

void Engine::SetLeaving(const std::string& pod_key, bool leaves) {
  ++changes_;
  if (evicted_.Set(pod_key, leaves)) nominator_.OnEvictionsChange();
}

cluster::ClusterSnapshot Engine::WithPromises(const cluster::Pod& pod) const {
  cluster::ClusterSnapshot with = snapshot();
  for (const auto& [node, others] : PromisesFor(pod)) {
    // Fails if the node does not exist.
    for (const Pod& other : others) (void)with.Bind(other, node);
  }
  return with;
}

void Engine::Precompute(const Framework& framework, Pods waiting) {
  precomputed_[&framework] = framework.Precompute(snapshot(), waiting);
  tables_.ForgetScores();  // Scores depend on the previous result.
}

Decision Engine::Schedule(const Framework& framework, const Pod& pod,
                          std::span<const size_t> among) {
  // 1. Ask the quota. A refusal that holds on every node needs no table.
  QuotaGate quota(admission_, framework, *pod);
  if (const quota::Refusal* refusal = quota.Everywhere()) {
    DiagnosisBuilder builder;
    builder.Refuse(QuotaPlugin::VerdictOf(*refusal), static_cast<int>(snapshot().size()),
                   framework.quotas());
    return {nullptr, 0, std::move(builder).Finish()};
  }

  // 2. Bring the verdicts and scores of this kind of pod up to date.
  KindTable& table = tables_.For(framework, pod, snapshot(), precomputed_[&framework],
                                 snapshot().context_version());

  // 3. Choose the nominated node, else the best one, unless candidates, quota or nominations
  // withhold
  //    it. A nominated pod with equal priority also goes first, as in kube-scheduler's
  //    RunFilterPluginsWithNominatedPods.
  const std::string* own = nominator_.FindNodeOf(pod->Key());
  const auto preferred = own == nullptr ? std::nullopt : snapshot().IndexOf(*own);
  std::optional<quota::Amounts> before;
  const Choice choice = Choose(table, preferred, [&](size_t index) -> std::optional<Barred> {
    if (!among.empty() && !std::ranges::binary_search(among, index)) return Barred();
    const cluster::NodeInfo& node = snapshot().node(index);
    if (const quota::Refusal* refusal = quota.On(node)) {
      return Barred{QuotaPlugin::VerdictOf(*refusal), framework.quotas()};
    }
    std::vector<Pod> first = nominator_.FirstOn(node.node->meta.name, *pod, before);
    if (first.empty()) return std::nullopt;
    const KindTable::Beside& beside = table.AskBeside(index, std::move(first), snapshot());
    if (beside.verdict.fits()) return std::nullopt;
    return Barred{beside.verdict, beside.by};
  });
  if (choice.node) return {&snapshot().node(*choice.node), choice.score, {}};

  // 4. Explain, with the reasons why nodes were withheld.
  if (choice.barred.empty()) return {nullptr, 0, table.Refusal(snapshot())};
  DiagnosisBuilder builder(table.Refusal(snapshot()));
  for (const Barred& one : choice.barred) builder.Correct(one.verdict, one.by);
  return {nullptr, 0, std::move(builder).Finish()};
}

}  // namespace nos::scheduling
