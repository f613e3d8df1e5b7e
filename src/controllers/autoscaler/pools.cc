// Reads the pools, counts their nodes, derives their state (pool_state.h) and writes it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "cluster/node_template.h"
#include "controllers/autoscaler/internal.h"
#include "planning/pool_nodes.h"

namespace nos::controllers {
namespace {

// After a write with no effect or no answer.
constexpr Duration kReadAgain = std::chrono::seconds(1);
constexpr int kMaxUnanswered = 5;  // then the write counts as refused

// Longest pause between reads of a webhook that does not answer: each attempt blocks the whole
// loop.
constexpr Duration kSilentPause = std::chrono::minutes(5);

// Tolerated clock skew. A node that was created further in the future does not count as starting.
constexpr Duration kClocksDiffer = std::chrono::minutes(5);

bool Signals(const cluster::NodePool& pool) { return pool.signal != cluster::PoolSignal::kNone; }

// Identifies the scaled object or webhook: a count read from another one is worthless.
std::string TargetOf(const cluster::NodePool& pool) {
  const cluster::ScaleTarget& target = pool.target;
  return fmt::format("{} {} {} {} {} {}", pool.meta.uid, target.api_version, target.kind, target.ns,
                     target.name, pool.webhook);
}

// Used if the new spec cannot be read: the pool as it was, with the status that was written.
cluster::NodePool LeftAsItWas(cluster::NodePool pool, const PoolStatus& status,
                              const Json& written) {
  pool.meta.resource_version = FindString(written, "metadata", "resourceVersion");
  pool.nodes = status.nodes;
  pool.wanted = status.wanted;
  pool.asked = status.asked;
  pool.failures = status.failures;
  pool.closed_until = status.closed_until;
  pool.learnt = status.learnt;
  std::erase_if(pool.conditions, [](const auto& known) { return known.type == kPoolReady; });
  pool.conditions.push_back(status.ready);
  return pool;
}

}  // namespace

const kube::Resource& PoolResource() {
  static const kube::Resource kPools{
      std::string(cluster::kPoolGroup), std::string(cluster::kPoolVersion),
      std::string(cluster::kNodePools), std::string(cluster::kNodePool), false};
  return kPools;
}

Autoscaler::Impl::Pool* Autoscaler::Impl::Look::Find(const std::string& name) {
  const auto found =
      std::ranges::find_if(pools, [&](const Pool& pool) { return pool.pool->meta.name == name; });
  return found == pools.end() ? nullptr : &*found;
}

void Autoscaler::Impl::TakeIn(const reconcile::Listers& view) {
  if (!looked_ || view.changes == nullptr || view.changes->everything) {
    around_ = view.around->Collect();
    looked_ = true;
    return;
  }
  for (const reconcile::ContextChange& change : view.changes->around) change.apply(around_);
}

// Replaces cached pools by our own writes where the cache still lags behind them.
std::vector<Autoscaler::Impl::PoolPtr> Autoscaler::Impl::PoolsNow() {
  std::vector<PoolPtr> pools;
  std::set<std::string> names;
  for (const auto& [name, pool] : around_.pools.rows()) {
    names.insert(name);
    const auto ours = written_.find(name);
    const bool newer =
        ours != written_.end() && ours->second->meta.uid == pool->meta.uid &&
        !kube::NotNewer(ours->second->meta.resource_version, pool->meta.resource_version);
    if (!newer && ours != written_.end()) written_.erase(ours);
    pools.push_back(newer ? written_.at(name) : pool);
  }
  std::erase_if(written_, [&](const auto& item) { return !names.contains(item.first); });
  std::erase_if(known_, [&](const auto& item) { return !names.contains(item.first); });
  return pools;
}

Status Autoscaler::Impl::LookAtPools(Look& look) {
  // 1. Read how many nodes each pool wants.
  look.nodes = *look.view.nodes.Snapshot();
  for (const PoolPtr& pool : PoolsNow()) {
    Known& known = known_[pool->meta.name];
    look.pools.push_back({pool, &known, {}, {}, pool});
    ReadScale(look, look.pools.back());
  }
  // 2. Assign nodes to pools, then record templates, then count: whether a node matches its pool
  //    depends on the template.
  std::vector<PoolPtr> own;
  own.reserve(look.pools.size());
  for (const Pool& pool : look.pools) own.push_back(pool.told);
  look.pool_of.reserve(look.nodes.size());
  for (const Node& node : look.nodes) look.pool_of.push_back(planning::PoolOf(*node, own));
  LearnTemplates(look);
  CountNodes(look);
  // 3. Derive and write the state of each pool.
  const PoolPatience patience{config_.least_patience, config_.close_for, config_.longest_close};
  Status error;
  for (Pool& pool : look.pools) {
    PoolSeen seen{pool.pool, pool.nodes, std::nullopt, pool.known->error(), ""};
    if (Signals(*pool.pool)) {
      seen.wanted = std::clamp(pool.pool->wanted, 0, cluster::kMaxPoolNodes);
    } else if (pool.known->scale) {
      seen.wanted = pool.known->scale->wanted;
    }
    if (cluster::IsDescribed(*pool.pool)) {
      const auto made = planning::NewNodeOf(*pool.pool, 0, catalogue_);
      if (!made.ok()) seen.problem = made.status().message();
    }
    if (const auto bad = unreadable_.find(pool.pool->meta.name); bad != unreadable_.end()) {
      seen.problem = "Ignoring change, keeping last valid state: " + bad->second.why;
    }
    pool.state = StateOf(seen, patience, look.now);
    PoolState& state = pool.state;
    if (state.write_back && Signals(*pool.pool)) state.status.wanted = *state.write_back;
    // The status is written before the wanted count is reduced. Otherwise the reduced count would
    // look as if all nodes had arrived.
    const Status written = WriteStatus(look, pool);
    if (!written.ok()) {
      error = written.Within("status of NodePool " + pool.pool->meta.name);
      continue;
    }
    if (state.failed) {
      telling_.Say({ReferenceTo(*pool.pool), kube::EventType::kWarning, "NotDelivered",
                    state.status.ready.message});
      Record({.action = "close",
              .pool = pool.pool->meta.name,
              .count = state.write_back ? seen.wanted.value_or(0) - *state.write_back : 0,
              .message = state.status.ready.message},
             look.now);
    }
    if (state.write_back && !Signals(*pool.pool) && pool.known->MayWrite()) {
      const Status back = WriteScale(look, pool, *state.write_back, {});
      if (!back.ok()) error = back.Within("NodePool " + pool.pool->meta.name);
    }
  }
  return error;
}

void Autoscaler::Impl::ReadScale(Look& look, Pool& pool) {
  Known& known = *pool.known;
  if (std::string target = TargetOf(*pool.pool); known.target != target) {
    known = Known();
    known.target = std::move(target);
  }
  if (look.now >= known.write_again) known.write_error = Status::Ok();
  if (Signals(*pool.pool)) {
    known.read_again = look.now + config_.read_again;
    return;
  }
  if (look.now < known.read_again) return;
  if (known.silent > 0 && look.waited) {  // at most one silent webhook per call
    known.read_again = look.now + kReadAgain;
    return;
  }
  const bool failed = !known.read_error.ok();
  Result<PoolScale> scale = scaling_.Read(*pool.pool, look.client);
  const Time now = look.clock.Now();
  known.read_again = now + config_.read_again;
  known.fresh = scale.ok();
  known.read_error = scale.status();
  if (!pool.pool->webhook.empty()) NoteAnswer(look, known, now);
  if (scale.ok()) {
    known.scale = *std::move(scale);
  } else if (!failed) {
    telling_.Say(
        {ReferenceTo(*pool.pool), kube::EventType::kWarning, "ScaleFailed",
         "Failed to read desired number of Nodes: " + Shortened(known.read_error.ToString(), 500)});
  }
}

// Reads a webhook that does not answer less and less often, until it answers or the pool uses
// another.
void Autoscaler::Impl::NoteAnswer(Look& look, Known& known, Time now) {
  const Code code = known.read_error.code();
  if (code != Code::kDeadline && code != Code::kUnavailable) {
    known.silent = 0;
    return;
  }
  look.waited = true;
  if (++known.silent == 1) known.silent_since = now;
  const kube::BackOff pauses{config_.read_again, std::max(config_.read_again, kSilentPause)};
  known.read_again = now + pauses.After(known.silent);
  known.read_error =
      Status(code, fmt::format("{}; it has not answered since {}, and is asked less and less often "
                               "(after {} at most)",
                               Shortened(known.read_error.message(), 300),
                               FormatTime(known.silent_since), FormatAge(pauses.limit)));
}

// Combines the mark on the node with marks that we wrote and the cache does not show yet.
std::optional<Removal> Autoscaler::Impl::RemovalNow(const cluster::Node& node, Time now) {
  std::optional<Removal> removal = RemovalOf(node);
  const auto ours = marked_.find(node.meta.uid);
  if (ours == marked_.end()) return removal;
  if (!removal) {
    marked_.erase(ours);
    return removal;
  }
  if (!ours->second) return std::nullopt;
  if (removal->state != Removal::State::kAsked) removal->since = now;
  removal->state = Removal::State::kAsked;
  removal->wanted = ours->second;
  return removal;
}

bool Autoscaler::Impl::IsTold(const Removal& removal, const Known& known) {
  if (removal.state != Removal::State::kAsked) return false;
  const int32_t left = removal.wanted.value_or(kTold);
  return left >= kTold || (known.scale && known.scale->wanted <= left);
}

Autoscaler::Impl::PoolPtr Autoscaler::Impl::WithLearnt(const Pool& pool) {
  if (!pool.told->learns) return pool.told;
  Known& known = *pool.known;
  if (known.described_of == pool.told && known.described->learnt == known.learnt) {
    return known.described;
  }
  cluster::NodePool learnt = *pool.told;
  learnt.learnt = known.learnt;
  known.described_of = pool.told;
  known.described =
      std::make_shared<const cluster::NodePool>(cluster::WithTemplate(std::move(learnt)));
  return known.described;
}

// Records what a spec leaves out from existing nodes. A node that is still starting is not used if
// a template is known already: its agent may not have reported its GPUs yet.
void Autoscaler::Impl::LearnTemplates(Look& look) {
  const uint64_t version = look.view.nodes.Version();
  for (size_t p = 0; p < look.pools.size(); ++p) {
    Pool& pool = look.pools[p];
    if (!pool.told->learns) continue;
    Known& known = *pool.known;
    if (!known.learnt) known.learnt = pool.told->learnt;
    pool.pool = WithLearnt(pool);
    const bool described = cluster::IsDescribed(*pool.pool);
    const bool seen = described || known.learnt_from == version;
    if (seen && look.now < known.learn_again) continue;
    known.learnt_from = version;
    known.learn_again = look.now + config_.read_again;
    std::vector<Node> nodes;
    for (size_t n = 0; n < look.nodes.size(); ++n) {
      if (look.pool_of[n] != static_cast<int>(p)) continue;
      const Node& node = look.nodes[n];
      const NodeLacks& lacks = lacks_.Of(node, pool.pool);
      if (!described || !IsStarting(*node, *pool.pool, lacks, look.now)) nodes.push_back(node);
    }
    const auto pods = look.view.pods.Snapshot();
    known.learnt = cluster::Learn(*pool.pool, nodes, *pods);
    pool.pool = WithLearnt(pool);
  }
}

// True if a shortfall of the node may still disappear.
bool Autoscaler::Impl::IsStarting(const cluster::Node& node, const cluster::NodePool& pool,
                                  const NodeLacks& lacks, Time now) const {
  const PoolPatience patience{config_.least_patience, {}, {}};
  const Time created = node.meta.created;
  return lacks.Any() && now < created + PatienceOf(pool, patience) && created < now + kClocksDiffer;
}

void Autoscaler::Impl::CountNodes(Look& look) {
  const PoolPatience patience{config_.least_patience, {}, {}};
  std::map<std::string_view, std::pair<Pool*, PoolNodes::Wrong>> closed;
  for (size_t n = 0; n < look.nodes.size(); ++n) {
    const Node& node = look.nodes[n];
    const std::optional<Removal> removal = RemovalNow(*node, look.now);
    if (removal) look.removals.emplace(node->meta.name, *removal);
    if (look.pool_of[n] < 0) continue;
    Pool& pool = look.pools[static_cast<size_t>(look.pool_of[n])];
    if (node->meta.deleted || (removal && IsTold(*removal, *pool.known))) {
      ++pool.nodes.going;
      continue;
    }
    pool.nodes.newest = std::max(pool.nodes.newest, node->meta.created);
    const NodeLacks& lacks = lacks_.Of(node, pool.pool);
    if (IsStarting(*node, *pool.pool, lacks, look.now)) {
      ++pool.nodes.starting;
      look.starting.insert(node->meta.name);
      DecideBy(node->meta.created + PatienceOf(*pool.pool, patience));
      continue;
    }
    ++pool.nodes.there;
    if (!lacks.readiness.empty()) {
      closed[node->meta.name] = {&pool, {node->meta.name, lacks.readiness, node->meta.created}};
      continue;
    }
    if (lacks.substance.empty()) continue;
    // Contradicting the spec is an error of the node or pool. Having less than the recorded
    // template is not: the template was never promised.
    cluster::NodePool said = *pool.told;
    said.learnt.reset();
    const std::string wrong = LacksOf(*node, said, catalogue_).substance;
    auto& list = wrong.empty() ? pool.nodes.less : pool.nodes.wrong;
    list.push_back({node->meta.name, wrong.empty() ? lacks.substance : wrong, node->meta.created});
  }
  lacks_.Forget();
  // A node with running pods is usable: they tolerate its taint, or it was Ready before.
  const auto pods = look.view.pods.Snapshot();
  if (!closed.empty()) {
    for (const auto& pod : *pods) {
      const auto on = closed.find(pod->node_name);
      if (on == closed.end()) continue;
      const planning::Mobility mobility = MobilityOf(*pod, config_.relocations.rules);
      if (mobility.kind != planning::Mobility::kGoes) closed.erase(on);
    }
  }
  for (auto& [name, one] : closed) one.first->nodes.closed.push_back(std::move(one.second));
  if (marked_.empty() && late_told_.empty()) return;
  std::set<std::string_view> uids;
  for (const Node& node : look.nodes) uids.insert(node->meta.uid);
  std::erase_if(marked_, [&](const auto& item) { return !uids.contains(item.first); });
  std::erase_if(late_told_, [&](const std::string& uid) { return !uids.contains(uid); });
}

Status Autoscaler::Impl::WriteStatus(Look& look, Pool& pool) {
  Json patch = PoolStatusPatch(*pool.told, pool.state.status);
  if (patch.is_null()) return Status::Ok();
  const std::string name = pool.told->meta.name;
  if (!pool.pool->meta.uid.empty()) MakeObject(patch, "metadata")["uid"] = pool.pool->meta.uid;
  const Result<Json> answer =
      look.client.Patch(PoolResource(), "", name, kube::PatchType::kMerge, patch, "status");
  if (!answer.ok()) {
    const bool gone = answer.status().code() == Code::kNotFound;
    return gone ? Status::Ok() : answer.status();
  }
  auto written = std::make_shared<cluster::NodePool>();
  if (!cluster::ReadNodePool(*answer, *written).ok()) {
    *written = LeftAsItWas(*pool.told, pool.state.status, *answer);
  }
  pool.told = written_[name] = std::move(written);
  pool.pool = pool.state.now.pool = WithLearnt(pool);
  return Status::Ok();
}

// After a write the count is read again before the next write. A write without an answer counts as
// done until then, so that no other pool is asked for the same nodes.
Status Autoscaler::Impl::WriteScale(Look& look, Pool& pool, int32_t wanted,
                                    const std::vector<std::string>& remove) {
  Known& known = *pool.known;
  if (!known.scale) return {Code::kUnavailable, "it is not known how many nodes are wanted"};
  const Status written = scaling_.Write(*pool.pool, *known.scale, wanted, remove, look.client);
  known.fresh = false;
  known.read_again = written.ok() ? Time{} : look.now + kReadAgain;
  const Code code = written.code();
  const bool perhaps = code == Code::kDeadline || code == Code::kUnavailable;
  if (written.ok() || perhaps) known.scale->wanted = wanted;
  if (written.ok()) {
    known.unanswered = 0;
    return written;
  }
  const bool open = perhaps || code == Code::kConflict;
  if (open && ++known.unanswered < kMaxUnanswered) return written;
  known.write_error = written;
  known.write_again = look.now + config_.close_for;
  if (!open) known.read_again = look.now + config_.read_again;
  telling_.Say({ReferenceTo(*pool.pool), kube::EventType::kWarning, "ScaleFailed",
                fmt::format("Failed to set desired number of Nodes to {}: {}", wanted,
                            Shortened(written.ToString(), 500))});
  return written;
}

// Errors that a retry resolves do not count as failures of the pool.
void Autoscaler::Impl::NoteShown(const Look& look, const Pool& pool, int missing,
                                 const Status& shown) {
  Known& known = *pool.known;
  if (shown.ok()) {
    if (missing > 0) known.write_error = Status::Ok();
    return;
  }
  const Code code = shown.code();
  if (code == Code::kDeadline || code == Code::kUnavailable || code == Code::kConflict) return;
  const bool failed = !known.write_error.ok();
  known.write_error = shown;
  known.write_again = look.now + config_.close_for;
  if (failed) return;
  DecideBy(look.now + kReadAgain);  // the status is written then
  telling_.Say({ReferenceTo(*pool.pool), kube::EventType::kWarning, "ScaleFailed",
                "Failed to publish missing Nodes: " + Shortened(shown.ToString(), 500)});
}

void Autoscaler::Impl::ShowSignals(Look& look) {
  Status error = signal_.Clean(look.view, look.client);
  for (const Pool& pool : look.pools) {
    if (!Signals(*pool.pool)) continue;
    const int missing = std::max(0, pool.state.status.wanted - pool.nodes.Present());
    const Status shown = signal_.Show(*pool.pool, missing, look.view, look.client, look.now);
    NoteShown(look, pool, missing, shown);
    if (!shown.ok()) error = shown.Within("NodePool " + pool.pool->meta.name);
  }
  if (error.ok()) return;
  Log(LogLevel::kWarn, "failed to publish demand to the other autoscaler, retrying",
      {{"error", error.ToString()}});
}

}  // namespace nos::controllers
