// Moves pods to other nodes and empties nodes. A pod is evicted only after capacity for it is held
// on its new node: by a placeholder, a pod of nos with the same requests that runs there.
//
//   Relocations relocations(config);
//   relocations.Start(relocation, view, client, now);   // of a node, or for a pending pod
//   ReconcileResult next = relocations.Step(view, client, clock);
//   for (const RelocationNote& note : relocations.TakeNotes()) ...
//
// Steps of one relocation, all or nothing until its first eviction:
//   1. A node to be removed is cordoned and marked (kRemoval).
//   2. A placeholder is created for each move. The partitioner and the scheduler treat it as any
//      other pod, but nos's scheduler preempts no pod for it.
//   3. When all placeholders run on their nodes, each is marked as held. Then the pods are evicted
//      through the eviction API, which respects PodDisruptionBudgets and grace periods.
//   4. When an evicted pod's successor is pending, or none appears, its placeholder is deleted.
//   5. When no other pod is left on the node, it is marked as emptied. Its pool may be scaled down.
// An error or a timeout before the first eviction calls the relocation off: placeholders are
// deleted and the node is uncordoned. After the first eviction, moved pods stay moved and the
// others stay where they are.
//
// State that must survive a crash is kept in annotations of nodes and placeholders. Anyone may have
// changed these, so unreadable ones call the relocation off. Owned by one thread.
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

#include "cluster/placeholder.h"
#include "planning/mobility.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

// On a node to be removed: JSON {"pool":"a100","id":"r-7k2","since":"2026-01-01T00:00:00Z",
// "state":"Emptying"}. States: Emptying, Emptied, Asked (the pool has been asked to shrink,
// `wanted` is its new number of nodes). "cordoned":true: the node was cordoned before and stays so.
inline constexpr std::string_view kRemoval = "nos.nebuly.com/removal";
// On a placeholder: JSON {"id":"r-7k2","of":3,"pod":"ml/train-0","uid":"...","from":"gpu-1",
// "to":"gpu-2","for":"ml/big"}; `for` is absent when a node is emptied. Other members: see PlaceFor
// (placeholder.h).
inline constexpr std::string_view kPlaceFor = "nos.nebuly.com/place-for";
// On a node that pods leave to free capacity for a pending pod: JSON {"id":"r-7k2","for":"ml/big",
// "since":"2026-01-01T00:00:00Z"}. The node stays cordoned until the successors have nodes, because
// they would otherwise take the freed capacity.
inline constexpr std::string_view kMovesAway = "nos.nebuly.com/moves-away";
// On a node that pods were moved away from for other pods within the last hour: JSON
// {"r-7k2":{"at":"2026-01-01T00:00:00Z","pods":{"ml":2}}}, by relocation and namespace. It carries
// the budgets of moves across restarts, and stays when the node is uncordoned.
inline constexpr std::string_view kMovedFrom = "nos.nebuly.com/moved";
using cluster::IsPlaceholder;
using cluster::kPlaceholder;

struct RelocationConfig {
  std::string ns = "nos";  // namespace of placeholders
  // Namespace in which an earlier version kept them. Pods left there are deleted. Empty
  // or `ns`: none.
  std::string former_ns{};
  std::string image;                                  // of placeholders
  std::vector<std::string> command;                   // of placeholders; empty: the image's own
  std::vector<std::string> pull_secrets{};            // imagePullSecrets of placeholders
  Duration hold_timeout = std::chrono::minutes(3);    // until all places are held
  Duration drain_timeout = std::chrono::minutes(15);  // until budgets allow all evictions
  // Until a controller creates the successor.
  Duration successor_timeout = std::chrono::seconds(30);
  Duration eviction_retry = std::chrono::seconds(5);  // back-off after a refused eviction
  planning::MobilityRules rules;
  // For placeholders. It should be a class with preemptionPolicy Never and a value that is never
  // preempted. Empty: the class of the moved pod, for which kube-scheduler may preempt; nos's
  // scheduler never does.
  std::string priority_class;
};

struct Relocation {
  std::string id;       // from NewId; valid in a DNS label
  std::string node;     // node to be emptied; empty: none
  std::string pool;     // of the node
  std::string for_pod;  // "ns/name" of the pending pod that needs capacity; empty: none
  std::vector<planning::Move> moves;  // none: the node is empty already
};

struct RelocationNote {
  enum class Kind {
    kStarted,
    kHeld,       // all places are held, evictions begin
    kEvicted,    // one pod
    kCalledOff,  // no pod was evicted, or no more will be
    kMoved,      // done; a node is emptied
    kBadMark,    // an unusable mark was removed from a node, its cordon is left as it is
  } kind = Kind::kStarted;
  std::string id, node, pool, for_pod;
  std::string pod, from, to;  // for kEvicted
  std::string placeholder;    // for kCalledOff: one of no relocation, which is deleted
  std::string why;            // for kCalledOff and kBadMark
  size_t moves = 0;           // for kStarted: the number of pods
  bool any_evicted = false;   // for kCalledOff
  bool cordoned = false;      // for kBadMark
};

// A node that is being removed.
struct Removal {
  enum class State { kEmptying, kEmptied, kAsked } state = State::kEmptying;
  std::string pool, id;
  Time since{};                   // in this state
  std::optional<int32_t> wanted;  // for kAsked: the remaining number of nodes of the pool
  bool was_cordoned = false;      // by another client, before
};
std::string WriteRemoval(const Removal& removal);
// Error: kInvalid.
Result<Removal> ReadRemoval(std::string_view text);
// The mark of the node. Absent: the node is not being removed, or the mark is unreadable.
std::optional<Removal> RemovalOf(const cluster::Node& node);

// A node that pods move away from and that stays in the cluster.
struct MovesAway {
  std::string id, for_pod;
  Time since{};
  bool was_cordoned = false;  // by another client, before
};
std::string WriteMovesAway(const MovesAway& mark);
// Error: kInvalid.
Result<MovesAway> ReadMovesAway(std::string_view text);
// The mark of the node. Absent: it has no mark, or the mark is unreadable.
std::optional<MovesAway> MovesAwayOf(const cluster::Node& node);

// The number of pods by namespace that one relocation planned to move away from a node.
struct Moved {
  Time at{};
  std::map<std::string, int> pods;  // by namespace
};
using MovedById = std::map<std::string, Moved, std::less<>>;
inline constexpr Duration kMovedCounts = std::chrono::hours(1);
std::string WriteMoved(const MovedById& moved);
// Error: kInvalid.
Result<MovedById> ReadMoved(std::string_view text);
// Moves away from the node in the hour before `now`. Unreadable entries and entries in the future
// are left out.
MovedById MovedFrom(const cluster::Node& node, Time now);

// State of a relocation that is not kept in the cluster. Losing it does no harm.
struct RelocationMemory {
  struct Eviction {
    Time again{};         // not before
    bool let_go = false;  // evicted; the caches may not show it yet
  };
  std::string off;  // why it was called off; empty: it was not
  bool reported_off = false, reported_held = false, reported_moved = false;
  std::map<std::string, Eviction> evictions;  // by uid
  std::map<std::string, Time> missed;         // by uid of an evicted pod: since when it is gone
  Time seen{};                                // when it was last in the caches
  std::set<std::string> successors;           // uids of the successors found
  std::optional<Time> over;                   // since when it has no placeholders
};

class Relocations {
 public:
  explicit Relocations(RelocationConfig config) : config_(std::move(config)) {}

  static std::string NewId(uint64_t number);

  // Cordons the node and creates the placeholders. On an error the relocation is called off, here
  // or by the next Step. REQUIRES: neither its node nor its pods are in a relocation. Error:
  // kInvalid: no place can be held for one of the pods, or its placeholder is rejected. kConflict:
  // the node has changed. Others as returned by the API server.
  Status Start(const Relocation& relocation, const reconcile::Listers& view, kube::Client& client,
               Time now);
  // Advances each relocation in the caches by one step.
  reconcile::ReconcileResult Step(const reconcile::Listers& view, kube::Client& client,
                                  const Clock& clock);
  // Stops emptying the node and uncordons it, because its capacity is needed. This is refused once
  // a pod was evicted, but possible again when the node is emptied. Returns whether the node stays.
  bool CallOff(const std::string& node, std::string_view why, const reconcile::Listers& view,
               kube::Client& client, Time now);
  // Removes mark and cordon from a node that stays after all, in any state. Error: kConflict if the
  // node has changed since it was read; retry with the current node.
  Status Keep(const cluster::Node& node, kube::Client& client);
  // Records that the pool is asked to remove the node, now or at once. Error: kInvalid if the node
  // has no mark, kConflict if it has changed since it was read.
  Status MarkAsked(const cluster::Node& node, int32_t wanted, kube::Client& client, Time now);

  // Keys of pods that are being moved, and of pods for which capacity is freed.
  std::set<std::string, std::less<>> Busy(const reconcile::Listers& view) const;
  // The number of relocations in the caches.
  int Count(const reconcile::Listers& view) const;
  std::vector<RelocationNote> TakeNotes();

 private:
  RelocationConfig config_;
  std::vector<RelocationNote> notes_;
  std::map<std::string, RelocationMemory> memory_;  // by id
};

}  // namespace nos::controllers
