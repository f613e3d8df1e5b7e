#include "scheduling/engine.h"

#include <algorithm>
#include <tuple>

#include "scheduling/diagnosis.h"
#include "scheduling/quota_plugin.h"

namespace nos::scheduling {

using cluster::NodeInfo;

namespace {

// False if a filter or score of another pod may depend on the difference.
bool SameToOthers(const cluster::Pod& a, const cluster::Pod& b) {
  return a.meta.labels == b.meta.labels && a.promised == b.promised &&
         a.meta.deleted.has_value() == b.meta.deleted.has_value() && a.meta.uid == b.meta.uid &&
         cluster::RequestsOf(a) == cluster::RequestsOf(b) &&
         cluster::ScoredRequestsOf(a) == cluster::ScoredRequestsOf(b);
}

// False if decisions on other nodes may depend on the difference.
bool SameToOthers(const cluster::Node& a, const cluster::Node& b) {
  const auto same = [](const cluster::Taint& left, const cluster::Taint& right) {
    return left.key == right.key && left.value == right.value && left.effect == right.effect;
  };
  return a.meta.labels == b.meta.labels && a.unschedulable == b.unschedulable &&
         std::ranges::equal(a.taints, b.taints, same);
}

bool HasSameImages(const cluster::Node& a, const cluster::Node& b) {
  return std::ranges::equal(a.images, b.images, {}, &cluster::NodeImage::name,
                            &cluster::NodeImage::name);
}

}  // namespace

Engine::Engine(const gpu::Catalogue& catalogue)
    : snapshot_(cluster::ClusterSnapshot::Build({}, {}, catalogue)) {}

void Engine::Touch(std::string_view node) const {
  if (on_node_) on_node_(node);
}

void Engine::Note(std::string_view node, Pod pod, bool came) {
  Touch(node);
  openings_ += came ? 0 : 1;
  ++changes_;
  tables_.Note(snapshot_, node, std::move(pod), came);
}

void Engine::CountPriority(int32_t priority, int sign) {
  const auto count = priorities_.try_emplace(priority).first;
  sign > 0 ? ++count->second : --count->second;
  if (count->second == 0) priorities_.erase(count);
}

std::optional<int32_t> Engine::LeastPriority() const {
  if (priorities_.empty()) return std::nullopt;
  return priorities_.begin()->first;
}

void Engine::SetNode(std::shared_ptr<const cluster::Node> node) {
  ++openings_;
  ++changes_;
  const std::string name = node->meta.name;
  Touch(name);
  const NodeInfo* before = snapshot_.Find(name);
  if (before != nullptr) {
    const bool alike = SameToOthers(*before->node, *node);
    const bool same_gpus = quota::GpuWorthOf(before->node.get(), charge_rules_) ==
                           quota::GpuWorthOf(node.get(), charge_rules_);
    if (!HasSameImages(*before->node, *node)) tables_.NoteImages();
    snapshot_.SetNode(std::move(node));
    if (!same_gpus) {
      ChargeAnew(name);
      for (const Pod& pod : snapshot_.Find(name)->pods) Count(pod, name);
    }
    if (alike) return Note(name, nullptr, false);
    return tables_.Forget();
  }
  snapshot_.SetNode(std::move(node));
  ChargeAnew(name);
  tables_.Forget();
  const auto homeless = homeless_.extract(name);
  if (homeless.empty()) return;
  for (const std::string& key : homeless.mapped()) {
    const auto placed = placed_.find(key);
    if (placed == placed_.end() || placed->second.node != name) continue;
    (void)snapshot_.Bind(placed->second.pod, name);  // the node exists
    Count(placed->second.pod, name);
  }
  snapshot_.SetNode(snapshot_.Find(name)->node);  // recomputes which pod uses which instance
}

void Engine::RemoveNode(const std::string& name) {
  const NodeInfo* info = snapshot_.Find(name);
  if (info == nullptr) return;
  Touch(name);
  const std::vector<Pod> pods(info->pods.begin(), info->pods.end());
  for (const Pod& pod : pods) homeless_[name].insert(pod->Key());
  snapshot_.RemoveNode(name);
  for (const Pod& pod : pods) Count(pod, name);
  tables_.Forget();
  ++openings_;
  ++changes_;
  ChargeAnew(name);
}

// Compares with copies of the tables, because no event reports changes of quotas.
void Engine::TakeInQuotas() {
  const cluster::ClusterContext& around = snapshot_.around();
  if (around.quotas.IsCopyOf(quotas_) && around.composite_quotas.IsCopyOf(composite_quotas_)) {
    return;
  }
  const auto same = [](const auto& a, const auto& b) {
    return std::ranges::equal(a.rows(), b.rows(), [](const auto& left, const auto& right) {
      return left.second == right.second || cluster::SameTerms(*left.second, *right.second);
    });
  };
  const bool alike =
      same(around.quotas, quotas_) && same(around.composite_quotas, composite_quotas_);
  quotas_ = around.quotas;
  composite_quotas_ = around.composite_quotas;
  if (alike) return;
  ledger_.SetQuotas(quota::QuotasOf(around));
  judged_ = false;
}

void Engine::Count(const Pod& pod, const std::string& node) {
  ++changes_;
  JudgeAnew(*pod);
  const NodeInfo* info = snapshot_.Find(node);
  ledger_.SetPod(
      pod, quota::ChargeOf(*pod, info == nullptr ? nullptr : info->node.get(), charge_rules_));
}

void Engine::Bind(const Pod& pod, const std::string& node) {
  Count(pod, node);
  if (!snapshot_.Bind(pod, node).ok()) {
    homeless_[node].insert(pod->Key());
    return;
  }
  Note(node, pod, true);
}

void Engine::Unbind(const cluster::Pod& pod, const std::string& node) {
  ++changes_;
  JudgeAnew(pod);
  ledger_.RemovePod(pod.Key());
  const Pod held = placed_.at(pod.Key()).pod;
  if (snapshot_.Unbind(pod, node).ok()) return Note(node, held, false);
  const auto homeless = homeless_.find(node);
  if (homeless == homeless_.end()) return;
  homeless->second.erase(pod.Key());
  if (homeless->second.empty()) homeless_.erase(homeless);
}

void Engine::SetPod(const Pod& pod) {
  const std::string key = pod->Key();
  const auto found = placed_.find(key);
  const bool counts = !pod->node_name.empty() && !pod->Finished();
  if (found == placed_.end()) {
    if (!counts) return;
    Bind(pod, pod->node_name);
    CountPriority(pod->priority, 1);
    placed_.emplace(key, Placed{pod, pod->node_name, false});
    return;
  }
  Placed& placed = found->second;
  const bool successor = placed.pod->meta.uid != pod->meta.uid;
  if (!counts && (!placed.assumed || pod->Finished() || successor)) return RemovePod(key);
  if (!counts) return;
  if (placed.node != pod->node_name || successor) {
    Unbind(*placed.pod, placed.node);
    Bind(pod, pod->node_name);
  } else if (SameToOthers(*placed.pod, *pod)) {
    (void)snapshot_.UpdatePod(pod);  // pods on unknown nodes are in no snapshot
    Touch(placed.node);
    Count(pod, placed.node);
  } else {
    Count(pod, placed.node);
    Note(placed.node, placed.pod, false);
    (void)snapshot_.UpdatePod(pod);
    Note(placed.node, pod, true);
  }
  CountPriority(placed.pod->priority, -1);
  CountPriority(pod->priority, 1);
  placed = {pod, pod->node_name, false};
}

void Engine::RemovePod(const std::string& key) {
  const auto found = placed_.find(key);
  if (found == placed_.end()) return;
  Unbind(*found->second.pod, found->second.node);
  CountPriority(found->second.pod->priority, -1);
  placed_.erase(found);
}

void Engine::Assume(const Pod& pod, const std::string& node) {
  RemovePod(pod->Key());
  Bind(pod, node);
  CountPriority(pod->priority, 1);
  placed_.emplace(pod->Key(), Placed{pod, node, true});
}

void Engine::Forget(const std::string& key) {
  if (IsAssumed(key)) RemovePod(key);
}

bool Engine::IsAssumed(const std::string& key) const {
  const auto found = placed_.find(key);
  return found != placed_.end() && found->second.assumed;
}

Verdict Engine::Reserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                        CycleState& state) {
  for (const ReservePlugin* plugin : framework.reservers()) {
    Verdict verdict = plugin->Reserve(pod, node, snapshot_, state);
    if (verdict.fits()) continue;
    Unreserve(framework, pod, node, state);
    return verdict;
  }
  if (!framework.reservers().empty()) Note(node, nullptr, true);
  return Verdict::Fits();
}

void Engine::Unreserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                       CycleState& state) {
  const auto plugins = framework.reservers();
  for (size_t i = plugins.size(); i > 0; --i)
    plugins[i - 1]->Unreserve(pod, node, snapshot_, state);
  Note(node, nullptr, false);
}

Status Engine::SetGpus(const std::string& node, cluster::NodeGpus gpus) {
  NOS_RETURN_IF_ERROR(snapshot_.SetGpus(node, std::move(gpus)));
  Note(node, nullptr, false);
  return Status::Ok();
}

void Engine::Precompute(const Framework& framework, Pods waiting) {
  precomputed_[&framework] = framework.Precompute(snapshot_, waiting);
  tables_.ForgetScores();  // Scores depend on the previous result.
}

const Engine::Placed* Engine::FindPlaced(const std::string& pod_key) const {
  const auto found = placed_.find(pod_key);
  return found == placed_.end() ? nullptr : &found->second;
}

// If the pod's charge differs between nodes, the quota is checked per node, once per GPU memory
// size.
Decision Engine::Schedule(const Framework& framework, const Pod& pod,
                          std::span<const size_t> among) {
  const auto not_barred = [](size_t, KindTable&) { return std::optional<Barred>(); };
  const auto account = ledger_.balance().AccountOf(pod->meta.ns);
  if (framework.quotas() == nullptr || !account) {
    return ScheduleBy(framework, pod, among, not_barred);
  }
  if (!quota::DependsOnNode(*pod)) {
    const auto refusal = WhyNotByQuota(framework, *pod, nullptr);
    if (!refusal) return ScheduleBy(framework, pod, among, not_barred);
    DiagnosisBuilder builder;
    builder.Refuse(QuotaPlugin::VerdictOf(*refusal), static_cast<int>(snapshot_.size()),
                   framework.quotas());
    return {nullptr, 0, std::move(builder).Finish()};
  }
  std::map<quota::GpuWorth, std::optional<quota::Refusal>> by_worth;
  const auto by_quota = [&](size_t index, KindTable&) -> std::optional<Barred> {
    const NodeInfo& node = snapshot_.node(index);
    const auto [found, fresh] =
        by_worth.try_emplace(quota::GpuWorthOf(node.node.get(), charge_rules_));
    if (fresh) found->second = WhyNotByQuota(framework, *pod, &node);
    if (!found->second) return std::nullopt;
    return Barred{QuotaPlugin::VerdictOf(*found->second), framework.quotas()};
  };
  return ScheduleBy(framework, pod, among, by_quota);
}

Decision Engine::ScheduleBy(const Framework& framework, const Pod& pod,
                            std::span<const size_t> among,
                            FunctionRef<std::optional<Barred>(size_t, KindTable&)> why_barred) {
  KindTable& table =
      tables_.For(framework, pod, snapshot_, precomputed_[&framework], snapshot_.around_version());
  const auto own = nominations_.find(pod->Key());
  const auto preferred = own == nominations_.end() ? std::nullopt : snapshot_.IndexOf(own->second);
  std::optional<quota::Amounts> before;
  const Choice choice = Choose(table, preferred, [&](size_t node) -> std::optional<Barred> {
    if (!among.empty() && !std::ranges::binary_search(among, node)) return Barred();
    std::optional<Barred> why = why_barred(node, table);
    return why ? why : WhyKept(pod, node, table, before);
  });
  if (choice.node) return {&snapshot_.node(*choice.node), choice.score, {}};
  if (choice.barred.empty()) return {nullptr, 0, table.Refusal(snapshot_)};
  DiagnosisBuilder builder(table.Refusal(snapshot_));
  for (const Barred& one : choice.barred) builder.Correct(one.verdict, one.by);
  return {nullptr, 0, std::move(builder).Finish()};
}

}  // namespace nos::scheduling
