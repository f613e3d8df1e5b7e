// Pods on their way to other nodes, and nodes that are emptied. Nothing is evicted before its new
// place is held: by a pod of our own, the placeholder, that asks for the same and runs there.
//
//   Relocations relocations(config);
//   relocations.Start(relocation, client, now);     // of a node, or for a pod that waits
//   Outcome next = relocations.Step(view, client, clock);
//   for (const RelocationNote& note : relocations.TakeNotes()) ...
//
// One relocation, all or nothing until its first eviction:
//   1. its node, if it is to go, is cordoned and marked (kRemoval);
//   2. a placeholder for each move is made; the partitioner and the scheduler treat it as any pod,
//      but that nos's scheduler preempts nobody for it;
//   3. when all of them run where they shall, which each then says, the pods are evicted through
//   the
//      eviction API, as budgets and grace periods let them go;
//   4. when the successor of an evicted pod waits (or none comes), its placeholder is deleted;
//   5. when nothing else is on the node, it is `emptied`: the pool may be made smaller by it.
// What goes wrong before the first eviction, or takes too long, calls all of it off: placeholders
// are deleted, the node takes pods again. Afterwards what has moved has moved, and the rest stays.
//
// All that must outlive a crash stands in the cluster: in annotations of nodes and placeholders. It
// trusts none of them to be its own or whole: what cannot be read is called off. One owner thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcile/reconciler.h"
#include "planning/mobility.h"

namespace nos::controllers {

// On a node that is to go: JSON {"pool":"a100","id":"r-7k2","since":"2026-01-01T00:00:00Z",
// "state":"Emptying"}. States: Emptying, Emptied, Asked (its pool is told; `wanted` says how many
// nodes that leaves). "cordoned":true: somebody else had cordoned it before; it stays so.
inline constexpr std::string_view kRemoval = "nos.nebuly.com/removal";
// On a placeholder: JSON {"id":"r-7k2","of":3,"pod":"ml/train-0","uid":"...","from":"gpu-1",
// "to":"gpu-2","for":"ml/big"}; `for` is absent when a node is emptied. What else is in it:
// PlaceFor (placeholder.h).
inline constexpr std::string_view kPlaceFor = "nos.nebuly.com/place-for";
// On a node that pods move away from for one that waits: JSON {"id":"r-7k2","for":"ml/big",
// "since":"2026-01-01T00:00:00Z"}. It is cordoned until their successors have nodes, or they would
// take the room that they made.
inline constexpr std::string_view kMovesAway = "nos.nebuly.com/moves-away";
// On a node that pods were moved away from for others, within the last hour: JSON
// {"r-7k2":{"at":"2026-01-01T00:00:00Z","pods":{"ml":2}}}, by relocation and namespace. Budgets
// know by it what a former process has moved; it stays when the node takes pods again.
inline constexpr std::string_view kMovedFrom = "nos.nebuly.com/moved";
// Label of placeholders, so that they are found.
inline constexpr std::string_view kPlaceholder = "nos.nebuly.com/placeholder";

struct RelocationConfig {
  std::string ns = "nos";                              // where placeholders are made
  std::string image;                                   // of placeholders
  std::vector<std::string> command;                    // of placeholders; empty: the image's own
  Duration hold_deadline = std::chrono::minutes(3);    // for all places to be held
  Duration drain_deadline = std::chrono::minutes(15);  // for budgets to let pods go
  Duration successor_deadline = std::chrono::seconds(30);  // for who makes the pod anew
  Duration evict_again = std::chrono::seconds(5);          // after a budget has refused
  planning::MobilityRules rules;
  // Of placeholders: one with preemptionPolicy Never, of a value that nobody preempts. "": that of
  // the pod that moves, for which kube-scheduler may preempt; nos's scheduler never does.
  std::string priority_class;
};

struct Relocation {
  std::string id;                     // NewId; of DNS labels
  std::string node;                   // that is emptied; "": none
  std::string pool;                   // of the node
  std::string for_pod;                // "ns/name": that waits for room; "": none
  std::vector<planning::Move> moves;  // none: the node is empty already
};

struct RelocationNote {
  enum class Kind {
    kStarted,
    kHeld,       // all places are; the evictions begin
    kEvicted,    // one pod
    kCalledOff,  // nothing was evicted, or no more will be
    kMoved,      // done; a node is emptied
    kBadMark,    // that of a node was removed, and its cordon was left as it is
  } kind = Kind::kStarted;
  std::string id, node, pool, for_pod;
  std::string pod, to;  // of kEvicted
  std::string message;  // one sentence for a person
};

// A node that is on its way out.
struct Removal {
  enum class State { kEmptying, kEmptied, kAsked } state = State::kEmptying;
  std::string pool, id;
  Time since{};                   // in this state
  std::optional<int32_t> wanted;  // of kAsked: nodes of the pool that are left
  bool was_cordoned = false;      // by somebody else, before
};
std::string WriteRemoval(const Removal& removal);
// Error: kInvalid.
Result<Removal> ReadRemoval(std::string_view text);
// Of the node; none: it stays. What cannot be read counts as none.
std::optional<Removal> RemovalOf(const cluster::Node& node);

// A node that pods move away from, and stays.
struct MovesAway {
  std::string id, for_pod;
  Time since{};
  bool was_cordoned = false;  // by somebody else, before
};
std::string WriteMovesAway(const MovesAway& mark);
// Error: kInvalid.
Result<MovesAway> ReadMovesAway(std::string_view text);
// Of the node; none: it has none, or none that can be read.
std::optional<MovesAway> MovesAwayOf(const cluster::Node& node);

// How many pods of which namespaces one relocation was to move away from a node.
struct Moved {
  Time at{};
  std::map<std::string, int> pods;  // by namespace
};
using MovedById = std::map<std::string, Moved, std::less<>>;
inline constexpr Duration kMovedCounts = std::chrono::hours(1);
std::string WriteMoved(const MovedById& moved);
// Error: kInvalid.
Result<MovedById> ReadMoved(std::string_view text);
// From the node, in the hour before `now`. What cannot be read, or lies in the future, is none.
MovedById MovedFrom(const cluster::Node& node, Time now);

bool IsPlaceholder(const cluster::Pod& pod);

// What is known of a relocation beside what stands in the cluster. Losing it does no harm.
struct RelocationMemory {
  struct Eviction {
    Time again{};         // not before
    bool let_go = false;  // the caches may not show it yet
  };
  std::string off;  // why it was called off; "": it was not
  bool told_off = false, told_held = false, told_moved = false;
  std::map<std::string, Eviction> evictions;  // by uid
  std::map<std::string, Time> missed;         // by uid of an evicted pod: since when it is gone
  Time seen{};                                // in the caches
  std::set<std::string> successors;           // uids of those that were waited for
  std::optional<Time> over;                   // since when it has no placeholders any more
};

class Relocations {
 public:
  explicit Relocations(RelocationConfig config) : config_(std::move(config)) {}

  static std::string NewId(uint64_t number);

  // Cordons the node and makes the placeholders. On an error it is called off, here or by the next
  // Step. REQUIRES: neither its node nor its pods are in a relocation.
  // Error: kInvalid: no place can be held for one of the pods, or its placeholder is refused;
  // kConflict: the node has changed; as the API server says.
  Status Start(const Relocation& relocation, const reconcile::View& view, kube::Client& client, Time now);
  // The next thing for each relocation that is in the caches.
  reconcile::Outcome Step(const reconcile::View& view, kube::Client& client, const Clock& clock);
  // Stops emptying the node and lets it take pods again, unless something was evicted; once it is
  // emptied, whatever was. For when its room is needed. Returns whether it does stay.
  bool CallOff(const std::string& node, std::string_view why, const reconcile::View& view,
               kube::Client& client, Time now);
  // Takes mark and cordon off a node that stays after all, whatever its state. Error: kConflict
  // when it has changed since it was read: again with what it is now.
  Status Keep(const cluster::Node& node, kube::Client& client);
  // Writes that the pool is told, or will be at once. Error: kInvalid when it has no mark;
  // kConflict when it has changed since it was read.
  Status MarkAsked(const cluster::Node& node, int32_t wanted, kube::Client& client, Time now);

  // Keys of pods that are on their way, and of those that they make room for.
  std::set<std::string, std::less<>> Busy(const reconcile::View& view) const;
  // How many relocations there are in the caches.
  int Count(const reconcile::View& view) const;
  std::vector<RelocationNote> TakeNotes();

 private:
  RelocationConfig config_;
  std::vector<RelocationNote> notes_;
  std::map<std::string, RelocationMemory> memory_;  // by id
};

}  // namespace nos::controllers
