#include "scheduling/engine.h"

#include <algorithm>
#include <tuple>

#include "scheduling/diagnosis.h"
#include "scheduling/plugins/capacity_scheduling/capacity_scheduling.h"

namespace nos::scheduling {

using cluster::NodeInfo;

namespace {

// Whether a filter or a score could tell the difference.
bool SameToOthers(const cluster::Pod& a, const cluster::Pod& b) {
  return a.meta.labels == b.meta.labels && a.promised == b.promised &&
         a.meta.deleted.has_value() == b.meta.deleted.has_value() && a.meta.uid == b.meta.uid &&
         cluster::RequestsOf(a) == cluster::RequestsOf(b) &&
         cluster::ScoredRequestsOf(a) == cluster::ScoredRequestsOf(b);
}

// Whether it counts alike for what is decided of other nodes.
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

void Engine::Note(std::string_view node, Pod pod, bool came) {
  openings_ += came ? 0 : 1;
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
  const std::string name = node->meta.name;
  const NodeInfo* before = snapshot_.Find(name);
  if (before != nullptr) {
    const bool alike = SameToOthers(*before->node, *node);
    const bool same_gpus = quota::GpuMemoryOf(*before->node, charge_rules_) ==
                           quota::GpuMemoryOf(*node, charge_rules_);
    if (!HasSameImages(*before->node, *node)) tables_.NoteImages();
    snapshot_.SetNode(std::move(node));
    if (!same_gpus) {
      for (const Pod& pod : snapshot_.Find(name)->pods) Count(pod, name);
    }
    if (alike) return Note(name, nullptr, false);
    return tables_.Forget();
  }
  snapshot_.SetNode(std::move(node));
  tables_.Forget();
  const auto homeless = homeless_.extract(name);
  if (homeless.empty()) return;
  for (const std::string& key : homeless.mapped()) {
    const auto placed = placed_.find(key);
    if (placed == placed_.end() || placed->second.node != name) continue;
    (void)snapshot_.Bind(placed->second.pod, name);  // the node is there
    Count(placed->second.pod, name);
  }
  snapshot_.SetNode(snapshot_.Find(name)->node);  // as it names them: who holds which instance
}

void Engine::RemoveNode(const std::string& name) {
  const NodeInfo* info = snapshot_.Find(name);
  if (info == nullptr) return;
  const std::vector<Pod> pods(info->pods.begin(), info->pods.end());
  for (const Pod& pod : pods) homeless_[name].insert(pod->Key());
  snapshot_.RemoveNode(name);
  for (const Pod& pod : pods) Count(pod, name);
  tables_.Forget();
  ++openings_;
}

// Copies of the tables as they are: nobody else tells what has changed in them.
void Engine::TakeInQuotas() {
  const cluster::Surroundings& around = snapshot_.around();
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
  if (!alike) ledger_.SetQuotas(quota::QuotasOf(around));
}

void Engine::Count(const Pod& pod, const std::string& node) {
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
    (void)snapshot_.UpdatePod(pod);  // homeless pods are in no snapshot
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
  if (!framework.reservers().empty()) tables_.Note(snapshot_, node, nullptr, false);
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

void Engine::Nominate(const Pod& pod, const std::string& node) {
  const std::string key = pod->Key();
  if (const auto before = nominations_.find(key); before != nominations_.end()) {
    std::vector<Promise>& promises = nominated_[before->second];
    std::erase_if(promises, [&](const Promise& one) { return one.pod->Key() == key; });
    if (promises.empty()) nominated_.erase(before->second);
    nominations_.erase(before);
    ++openings_;
  }
  if (node.empty()) return;
  nominations_[key] = node;
  nominated_[node].push_back({pod, StandingOf(*pod, node)});
}

std::string Engine::NomineeNode(const std::string& pod_key) const {
  const auto found = nominations_.find(pod_key);
  return found == nominations_.end() ? "" : found->second;
}

std::vector<Engine::Pod> Engine::Nominated(std::string_view node) const {
  std::vector<Pod> pods;
  if (const auto found = nominated_.find(node); found != nominated_.end()) {
    for (const Promise& promise : found->second) pods.push_back(promise.pod);
  }
  return pods;
}

std::vector<Engine::Pod> Engine::NominatedBehind(std::string_view node,
                                                 const cluster::Pod& pod) const {
  std::vector<Pod> behind;
  const auto found = nominated_.find(node);
  if (found == nominated_.end()) return behind;
  const auto own = StandingOf(pod, node);
  for (const Promise& promise : found->second) {
    const bool itself =
        promise.pod->meta.name == pod.meta.name && promise.pod->meta.ns == pod.meta.ns;
    if (!itself && !GoesFirst(promise, pod, own, false)) behind.push_back(promise.pod);
  }
  return behind;
}

Engine::QuotaStanding Engine::StandingOf(const cluster::Pod& pod, std::string_view node) const {
  const auto account = ledger_.balance().AccountOf(pod.meta.ns);
  if (!account) return QuotaStanding::kNone;
  const NodeInfo* info = snapshot_.Find(node);
  const quota::Amounts charge =
      quota::ChargeOf(pod, info == nullptr ? nullptr : info->node.get(), charge_rules_);
  return ledger_.balance().IsGuaranteed(*account, charge) ? QuotaStanding::kGuaranteed
                                                          : QuotaStanding::kCovered;
}

// What is guaranteed goes first; no pod without a quota takes what was set free for one that has
// one, as it may take no place of such a one (quota/claim.h). Two that were both promised something
// here must not wait for each other.
bool Engine::GoesFirst(const Promise& other, const cluster::Pod& pod, QuotaStanding own,
                       bool is_promised) const {
  const bool guaranteed = other.standing == QuotaStanding::kGuaranteed;
  if (guaranteed != (own == QuotaStanding::kGuaranteed)) return guaranteed;
  if (own == QuotaStanding::kNone && other.standing != QuotaStanding::kNone) return true;
  if (other.pod->priority != pod.priority) return other.pod->priority > pod.priority;
  return !is_promised || std::tuple(other.pod->meta.created, other.pod->Key()) <
                             std::tuple(pod.meta.created, pod.Key());
}

std::vector<Engine::Pod> Engine::FirstOn(std::string_view node, const cluster::Pod& pod) const {
  std::vector<Pod> first;
  const auto found = nominated_.find(node);
  if (found == nominated_.end()) return first;
  const auto own = StandingOf(pod, node);
  const bool is_promised = NomineeNode(pod.Key()) == node;
  for (const Promise& promise : found->second) {
    const cluster::Pod& other = *promise.pod;
    const bool itself = other.meta.name == pod.meta.name && other.meta.ns == pod.meta.ns;
    if (itself || placed_.contains(other.Key())) continue;
    if (GoesFirst(promise, pod, own, is_promised)) first.push_back(promise.pod);
  }
  return first;
}

Promises Engine::PromisesFor(const cluster::Pod& pod, const std::set<std::string>& left_out) const {
  Promises promises;
  for (const auto& [node, all] : nominated_) {
    std::vector<Pod> first = FirstOn(node, pod);
    std::erase_if(first, [&](const Pod& other) { return left_out.contains(other->Key()); });
    if (!first.empty()) promises.emplace(node, std::move(first));
  }
  return promises;
}

cluster::ClusterSnapshot Engine::WithPromises(const cluster::Pod& pod) const {
  cluster::ClusterSnapshot with = snapshot_;
  for (const auto& [node, others] : PromisesFor(pod)) {
    for (const Pod& other : others) (void)with.Bind(other, node);  // if it is there
  }
  return with;
}

void Engine::Learn(const Framework& framework, Pods waiting) {
  learnt_[&framework] = framework.Learn(snapshot_, waiting);
  tables_.ForgetScores();  // they are made of what was learnt before
}

// It would take what one that goes first was promised. Source: kube-scheduler's
// RunFilterPluginsWithNominatedPods: with those of the same priority, too.
std::optional<Barred> Engine::WhyKept(const Pod& pod, size_t node, KindTable& table) const {
  std::vector<Pod> first = FirstOn(snapshot_.node(node).node->meta.name, *pod);
  if (first.empty()) return std::nullopt;
  const KindTable::Beside& beside = table.AskBeside(node, std::move(first), snapshot_);
  if (beside.verdict.fits()) return std::nullopt;
  return Barred{beside.verdict, beside.by};
}

const Engine::Placed* Engine::FindPlaced(const std::string& pod_key) const {
  const auto found = placed_.find(pod_key);
  return found == placed_.end() ? nullptr : &found->second;
}

quota::Balance Engine::BalanceToReclaim(const cluster::Pod& pod,
                                        std::set<std::string> left_out) const {
  quota::Balance balance = BalanceFor(pod, left_out);
  const auto own = balance.AccountOf(pod.meta.ns);
  if (!own || StandingOf(pod, "") != QuotaStanding::kGuaranteed) return balance;
  const bool together = balance.IsGuaranteed(*own, quota::ChargeOf(pod, nullptr, charge_rules_));
  for (const auto& [node, promises] : nominated_) {
    for (const Promise& other : promises) {
      const bool see_to_it = together || balance.AccountOf(other.pod->meta.ns) != own;
      if (see_to_it && other.standing == QuotaStanding::kGuaranteed) {
        left_out.insert(other.pod->Key());
      }
    }
  }
  return BalanceFor(pod, left_out);
}

quota::Balance Engine::BalanceFor(const cluster::Pod& pod,
                                  const std::set<std::string>& left_out) const {
  quota::Balance balance = ledger_.balance();
  if (balance.size() == 0 || nominations_.empty()) return balance;
  const auto own = balance.AccountOf(pod.meta.ns);
  const bool own_is_guaranteed = StandingOf(pod, "") == QuotaStanding::kGuaranteed;
  for (const auto& [node, promises] : nominated_) {
    const NodeInfo* info = snapshot_.Find(node);
    for (const auto& [other, standing] : promises) {
      const bool guaranteed = standing == QuotaStanding::kGuaranteed;
      const bool itself = other->meta.name == pod.meta.name && other->meta.ns == pod.meta.ns;
      const auto account = balance.AccountOf(other->meta.ns);
      if (itself || !account || left_out.contains(other->Key()) || placed_.contains(other->Key())) {
        continue;
      }
      const quota::Amounts charge =
          quota::ChargeOf(*other, info == nullptr ? nullptr : info->node.get(), charge_rules_);
      const bool first =
          account == own ? other->priority >= pod.priority : !own_is_guaranteed || guaranteed;
      if (first) balance.Add(*account, charge);
    }
  }
  return balance;
}

void Engine::SetLeaving(const std::string& pod_key, bool leaves) {
  leaves ? void(leaving_.insert(pod_key)) : void(leaving_.erase(pod_key));
}

// What others had to leave is counted to those to whom it was promised. Of its own quota all
// counts: that has limits of its own, which nobody may exceed.
quota::Balance Engine::BalanceToDecide(const cluster::Pod& pod) const {
  quota::Balance balance = BalanceFor(pod);
  const auto own = balance.AccountOf(pod.meta.ns);
  for (const std::string& key : leaving_) {
    const quota::Amounts* charge = ledger_.ChargeOf(key);
    const Placed* placed = FindPlaced(key);
    if (charge == nullptr || placed == nullptr) continue;
    const auto account = balance.AccountOf(placed->pod->meta.ns);
    if (account && account != own) balance.Add(*account, *charge, -1);
  }
  return balance;
}

std::optional<quota::Refusal> Engine::WhyNotByQuota(const Framework& framework,
                                                    const cluster::Pod& pod,
                                                    const NodeInfo* node) const {
  const auto account = ledger_.balance().AccountOf(pod.meta.ns);
  if (framework.quotas() == nullptr || !account) return std::nullopt;
  const quota::Amounts charge =
      quota::ChargeOf(pod, node == nullptr ? nullptr : node->node.get(), charge_rules_);
  if (nominations_.empty() && leaving_.empty()) return ledger_.balance().WhyNot(*account, charge);
  return BalanceToDecide(pod).WhyNot(*account, charge, &ledger_.balance());
}

// Of all nodes alike, for a pod that counts alike on all of them; else each is asked for what the
// pod would count for there.
Decision Engine::Schedule(const Framework& framework, const Pod& pod) {
  const auto not_barred = [](size_t, KindTable&) { return std::optional<Barred>(); };
  const auto account = ledger_.balance().AccountOf(pod->meta.ns);
  if (framework.quotas() == nullptr || !account) return ScheduleBy(framework, pod, not_barred);
  if (!quota::DependsOnNode(*pod)) {
    const auto refusal = WhyNotByQuota(framework, *pod, nullptr);
    if (!refusal) return ScheduleBy(framework, pod, not_barred);
    DiagnosisBuilder builder;
    builder.Refuse(CapacityScheduling::VerdictOf(*refusal), static_cast<int>(snapshot_.size()),
                   framework.quotas());
    return {nullptr, 0, std::move(builder).Finish()};
  }
  std::map<int64_t, std::optional<quota::Refusal>> by_memory;  // of a GPU
  const auto by_quota = [&](size_t index, KindTable&) -> std::optional<Barred> {
    const NodeInfo& node = snapshot_.node(index);
    const auto [found, fresh] =
        by_memory.try_emplace(quota::GpuMemoryOf(*node.node, charge_rules_));
    if (fresh) found->second = WhyNotByQuota(framework, *pod, &node);
    if (!found->second) return std::nullopt;
    return Barred{CapacityScheduling::VerdictOf(*found->second), framework.quotas()};
  };
  return ScheduleBy(framework, pod, by_quota);
}

Decision Engine::ScheduleBy(const Framework& framework, const Pod& pod,
                            FunctionRef<std::optional<Barred>(size_t, KindTable&)> why_barred) {
  KindTable& table =
      tables_.For(framework, pod, snapshot_, learnt_[&framework], snapshot_.around_version());
  const auto own = nominations_.find(pod->Key());
  const auto preferred = own == nominations_.end() ? std::nullopt : snapshot_.IndexOf(own->second);
  const Choice choice = Choose(table, preferred, [&](size_t node) {
    std::optional<Barred> why = why_barred(node, table);
    return why ? why : WhyKept(pod, node, table);
  });
  if (choice.node) return {&snapshot_.node(*choice.node), choice.score, {}};
  if (choice.barred.empty()) return {nullptr, 0, table.Refusal(snapshot_)};
  DiagnosisBuilder builder(table.Refusal(snapshot_));
  for (const Barred& one : choice.barred) builder.Correct(one.verdict, one.by);
  return {nullptr, 0, std::move(builder).Finish()};
}

}  // namespace nos::scheduling
