#include "scheduling/rehearsal.h"

#include <utility>

#include "cluster/instance_search.h"
#include "scheduling/engine/kind_table.h"
#include "scheduling/engine/promises.h"
#include "scheduling/framework.h"
#include "scheduling/framework/budgets.h"

namespace nos::scheduling {

using cluster::NodeInfo;

const CycleState& PrecomputedOf(const Rehearsal::Precomputed& precomputed,
                                const Framework& framework) {
  static const CycleState kNothing;
  const auto known = precomputed.find(&framework);
  return known == precomputed.end() ? kNothing : known->second;
}

const NodeInfo* Rehearsal::FindNode(const Framework& framework, const Pod& pod,
                                    const Promises& promises, std::string_view preferred) {
  KindTable& table = tables_.For(framework, pod, snapshot_, PrecomputedOf(precomputed_, framework),
                                 context_version_);
  const auto why_barred = [&](size_t node) -> std::optional<Barred> {
    const auto others = promises.find(snapshot_.node(node).node->meta.name);
    if (others == promises.end()) return std::nullopt;
    const KindTable::Beside& beside = table.AskBeside(node, others->second, snapshot_);
    if (beside.verdict.fits()) return std::nullopt;
    return Barred{beside.verdict, beside.by};
  };
  const Choice choice = Choose(table, snapshot_.IndexOf(preferred), why_barred);
  return choice.node ? &snapshot_.node(*choice.node) : nullptr;
}

bool Rehearsal::Place(const Framework& framework, const Pod& pod, const std::string& node) {
  const NodeInfo* info = snapshot_.Find(node);
  if (info == nullptr) return false;
  const Pod placed = WithInstances(framework, PrecomputedOf(precomputed_, framework), *info, pod);
  const cluster::ClusterSnapshot before = snapshot_;
  (void)snapshot_.Bind(placed, node);  // the node exists
  CycleState state;
  for (const ReservePlugin* plugin : framework.reservers()) {
    if (plugin->Reserve(*placed, node, snapshot_, state).fits()) continue;
    snapshot_ = before;
    return false;
  }
  if (snapshot_.context_version() != before.context_version()) ++context_version_;
  tables_.Note(snapshot_, node, placed, true);
  if (!framework.reservers().empty()) tables_.Note(snapshot_, node, nullptr, false);
  return true;
}

void Rehearsal::Vacate(const Pod& pod, const std::string& node) {
  if (snapshot_.Vacate(*pod, node).ok()) tables_.Note(snapshot_, node, pod, false);
}

void Rehearsal::RemoveNode(const std::string& name) {
  snapshot_.RemoveNode(name);
  tables_.Forget();
}

void Rehearsal::Evict(const Pod& victim, const std::string& node) {
  Vacate(victim, node);
  if (!snapshot_.context().budgets.rows().empty()) CountGone(snapshot_.ChangeContext(), *victim);
}

Rehearsal::Pod WithInstances(const Framework& framework, const CycleState& precomputed,
                             const NodeInfo& node, Rehearsal::Pod pod) {
  const cluster::ResourceVector requests = cluster::RequestsOf(*pod);
  const bool may_create =
      framework.partitioned_by() == PartitionedBy::kScheduler && node.gpus.managed;
  if (!may_create || cluster::HasFreeInstances(node, requests)) return pod;
  auto promised =
      cluster::FindInstances(node, requests, framework.PreferredGpu(precomputed, *pod, node));
  // The filter should have refused; the pod then does not wait for instances that do not exist.
  if (!promised) return pod;
  auto with = std::make_shared<cluster::Pod>(*pod);
  with->promised = std::move(*promised);
  return with;
}

}  // namespace nos::scheduling
