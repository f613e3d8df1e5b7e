#include "controllers/relocations.h"

#include <fmt/core.h>

#include <algorithm>

#include "controllers/relocation/marks.h"
#include "controllers/relocation/placeholder.h"
#include "controllers/relocation/steps.h"

namespace nos::controllers {
namespace {

PlaceFor PlaceOf(const Relocation& relocation, const planning::Move& move, Time now) {
  PlaceFor what;
  what.id = relocation.id;
  what.of = static_cast<int>(relocation.moves.size());
  what.pod = move.pod->Key();
  what.uid = move.pod->meta.uid;
  if (const cluster::OwnerReference* owner = ControllerOf(*move.pod)) what.owner = owner->uid;
  what.from = move.from;
  what.to = move.to;
  what.for_pod = relocation.for_pod;
  what.since = now;
  return what;
}

Result<std::vector<Json>> MakePlaceholders(const RelocationConfig& config,
                                           const Relocation& relocation, Time now) {
  std::vector<Json> pods;
  for (const planning::Move& move : relocation.moves) {
    const int number = static_cast<int>(pods.size());
    NOS_ASSIGN(Json pod,
               MakePlaceholder(config, PlaceOf(relocation, move, now), number, *move.pod));
    pods.push_back(std::move(pod));
  }
  return pods;
}

Status Check(const Relocation& relocation) {
  if (!IsRelocationId(relocation.id)) {
    return Invalid(fmt::format("'{}' is not an id of a relocation", relocation.id));
  }
  if (relocation.node.empty() == relocation.for_pod.empty()) {
    return Invalid("a relocation is of a node, or for a pod");
  }
  if (!relocation.node.empty() && relocation.pool.empty()) {
    return Invalid(fmt::format("node {} is of no pool", relocation.node));
  }
  if (relocation.node.empty() && relocation.moves.empty()) return Invalid("no pod is to move");
  if (relocation.moves.size() > kMaxMovesAtOnce) {
    return Invalid(fmt::format("{} pods are too many to move at once: {} at most",
                               relocation.moves.size(), kMaxMovesAtOnce));
  }
  return Status::Ok();
}

RelocationNote NoteOf(const Relocation& relocation, RelocationNote::Kind kind) {
  RelocationNote note;
  note.kind = kind;
  note.id = relocation.id;
  note.node = relocation.node;
  note.pool = relocation.pool;
  note.for_pod = relocation.for_pod;
  return note;
}

// Cordons the nodes that pods leave for a pending pod. Returns the nodes after the patch. After an
// error Step undoes what was done.
Result<std::vector<cluster::Node>> CloseSources(const Relocation& relocation,
                                                const reconcile::Listers& view,
                                                kube::Client& client, Time now) {
  std::vector<cluster::Node> closed;
  if (relocation.for_pod.empty()) return closed;
  std::map<std::string, Moved> sources;
  for (const planning::Move& move : relocation.moves) ++sources[move.from].pods[move.pod->meta.ns];
  for (auto& [name, moves] : sources) {
    const auto node = view.nodes.Get(name);
    if (node == nullptr) return NotFound(fmt::format("node {} is gone", name));
    const auto& annotations = node->meta.annotations;
    if (annotations.contains(kRemoval) || annotations.contains(kMovesAway)) {
      return Status(Code::kConflict, fmt::format("other pods move away from node {}", name));
    }
    const MovesAway mark{relocation.id, relocation.for_pod, now, node->unschedulable};
    MovedById moved = MovedFrom(*node, now);
    moves.at = now;
    moved[relocation.id] = std::move(moves);
    NOS_ASSIGN(const Json written, MarkNode(*node, mark, moved, client));
    NOS_ASSIGN(cluster::Node as_it_is, cluster::DecodeNode(written));
    closed.push_back(std::move(as_it_is));
  }
  return closed;
}

// The annotation of the pod, if it is a readable placeholder.
std::optional<PlaceFor> ReadPlace(const cluster::Pod& pod, const std::string& ns) {
  if (pod.meta.ns != ns || !IsPlaceholder(pod) || pod.meta.deleted) return std::nullopt;
  const auto text = pod.meta.annotations.find(kPlaceFor);
  if (text == pod.meta.annotations.end()) return std::nullopt;
  auto what = ReadPlaceFor(text->second);
  if (!what.ok()) return std::nullopt;
  return *std::move(what);
}

}  // namespace

Status Relocations::Start(const Relocation& relocation, const reconcile::Listers& view,
                          kube::Client& client, Time now) {
  NOS_RETURN_IF_ERROR(Check(relocation));
  NOS_ASSIGN(const std::vector<Json> pods, MakePlaceholders(config_, relocation, now));
  std::optional<cluster::Node> node;  // the node after it is marked
  if (!relocation.node.empty()) {
    const auto known = view.nodes.Get(relocation.node);
    if (known == nullptr) return NotFound(fmt::format("node {} is gone", relocation.node));
    if (known->meta.annotations.contains(kMovesAway)) {
      return Status(Code::kConflict, fmt::format("pods move away from node {}", relocation.node));
    }
    if (RemovalOf(*known)) {
      return Invalid(fmt::format("node {} is being removed already", relocation.node));
    }
    Removal removal;
    removal.pool = relocation.pool;
    removal.id = relocation.id;
    removal.since = now;
    removal.was_cordoned = known->unschedulable;
    NOS_ASSIGN(const Json written, MarkNode(*known, removal, client));
    NOS_ASSIGN(node, cluster::DecodeNode(written));
  }
  NOS_ASSIGN(const std::vector<cluster::Node> sources, CloseSources(relocation, view, client, now));
  RelocationNote started = NoteOf(relocation, RelocationNote::Kind::kStarted);
  started.moves = relocation.moves.size();
  notes_.push_back(std::move(started));
  Status failed;
  std::vector<Result<Json>> made;
  if (!pods.empty()) made = client.CreateAll(kube::kPods, pods);
  for (const Result<Json>& one : made) {
    // The name is used by this relocation only.
    const bool there = one.ok() || one.status().code() == Code::kAlreadyExists;
    if (!there && failed.ok()) failed = one.status();
  }
  if (failed.ok()) return Status::Ok();
  // Step deletes placeholders that remain or are created later.
  for (const Json& pod : pods) {
    cluster::ObjectMeta meta;
    meta.ns = config_.ns;
    meta.name = FindString(pod, "metadata", "name");
    (void)DeletePlaceholder(meta, client);
  }
  if (node) (void)Keep(*node, client);
  for (const cluster::Node& source : sources) (void)ReopenNode(source, client);
  RelocationMemory& memory = memory_[relocation.id];
  memory.seen = now;
  memory.reported_off = true;
  memory.off = fmt::format("failed to create a placeholder: {}", failed.ToString());
  RelocationNote off = NoteOf(relocation, RelocationNote::Kind::kCalledOff);
  off.why = memory.off;
  notes_.push_back(std::move(off));
  return failed.Within("create placeholders in namespace " + config_.ns);
}

reconcile::ReconcileResult Relocations::Step(const reconcile::Listers& view, kube::Client& client,
                                             const Clock& clock) {
  return RelocationSteps(config_, view, client, clock.Now(), memory_, notes_).All();
}

bool Relocations::CallOff(const std::string& node, std::string_view why,
                          const reconcile::Listers& view, kube::Client& client, Time now) {
  return RelocationSteps(config_, view, client, now, memory_, notes_).CallOff(node, why);
}

Status Relocations::Keep(const cluster::Node& node, kube::Client& client) {
  return UnmarkNode(node, client).status();
}

Status Relocations::MarkAsked(const cluster::Node& node, int32_t wanted, kube::Client& client,
                              Time now) {
  std::optional<Removal> removal = RemovalOf(node);
  if (!removal) return Invalid(fmt::format("node {} is not being removed", node.meta.name));
  removal->state = Removal::State::kAsked;
  removal->since = now;
  removal->wanted = wanted;
  return MarkNode(node, *removal, client).status();
}

std::set<std::string, std::less<>> Relocations::Busy(const reconcile::Listers& view) const {
  std::set<std::string, std::less<>> busy;
  const auto pods = view.pods.Snapshot();
  for (const auto& pod : *pods) {
    const auto what = ReadPlace(*pod, config_.ns);
    if (!what) continue;
    busy.insert(what->pod);
    if (!what->for_pod.empty()) busy.insert(what->for_pod);
  }
  const auto nodes = view.nodes.Snapshot();
  for (const auto& node : *nodes) {
    if (const auto mark = MovesAwayOf(*node)) busy.insert(mark->for_pod);
  }
  return busy;
}

int Relocations::Count(const reconcile::Listers& view) const {
  std::set<std::string> ids;
  const auto pods = view.pods.Snapshot();
  for (const auto& pod : *pods) {
    if (const auto what = ReadPlace(*pod, config_.ns)) ids.insert(what->id);
  }
  const auto nodes = view.nodes.Snapshot();
  for (const auto& node : *nodes) {
    const auto removal = RemovalOf(*node);
    if (removal && removal->state == Removal::State::kEmptying) ids.insert(removal->id);
    if (const auto mark = MovesAwayOf(*node)) ids.insert(mark->id);
  }
  return static_cast<int>(ids.size());
}

std::vector<RelocationNote> Relocations::TakeNotes() { return std::exchange(notes_, {}); }

}  // namespace nos::controllers
