// Kind tables (kind_table.h) of the most recently used kinds of pods, over one changing snapshot.
// Internal to Engine and Rehearsal.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "scheduling/engine/domain_index.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

class Framework;
class KindTable;

class KindTables {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  KindTables();
  ~KindTables();
  KindTables(KindTables&&) noexcept;
  KindTables& operator=(KindTables&&) noexcept;

  // A pod was added to the node or removed from it. Null pod: the node itself changed.
  void Note(const cluster::ClusterSnapshot& snapshot, std::string_view node, Pod pod, bool came);
  // Images on some node changed.
  void NoteImages() { ++images_; }
  // The set of nodes, their labels or their taints changed.
  void Forget();
  // The inputs of scores changed (Precompute).
  void ForgetScores();

  // Returns the table, up to date. `context`: version of the cluster context. Valid until the next
  // call.
  KindTable& For(const Framework& framework, const Pod& pod,
                 const cluster::ClusterSnapshot& snapshot, const CycleState& precomputed,
                 uint64_t context);

  uint64_t made() const { return made_; }

 private:
  static constexpr size_t kMaxKinds = 64;

  // A change that tables must follow.
  struct Change {
    size_t node;
    Pod pod;
    bool came = false;
  };
  struct Kind {
    std::unique_ptr<KindTable> table;
    uint64_t at = 0;       // number of the first change that is not applied yet
    uint64_t context = 0;  // applied version of the cluster context
    uint64_t images = 0;   // applied value of images_
    // Number of interned resource names, if the pod requests a resource without one. Interning
    // another name may change its verdicts.
    std::optional<size_t> names = {};
    uint64_t used = 0;
  };

  bool CatchUp(Kind& kind, const cluster::ClusterSnapshot& snapshot, uint64_t context);

  DomainIndex domains_;
  // The oldest has number first_change_.
  std::deque<Change> changes_;
  uint64_t first_change_ = 0;
  std::unordered_map<std::string, Kind> kinds_;
  uint64_t uses_ = 0, made_ = 0;
  uint64_t images_ = 0;  // counts changes of images on nodes
};

// A feasible node is withheld from the pod, for example by a nomination.
struct Barred {
  Verdict verdict;
  const Plugin* by = nullptr;
};
struct Choice {
  std::optional<size_t> node;  // absent: no node
  int64_t score = 0;
  std::vector<Barred> barred;  // of better nodes that were withheld
};
// Chooses `preferred` if the pod fits there, else the best node that is not withheld. `why_barred`
// is called only for nodes that would otherwise be chosen.
Choice Choose(KindTable& table, std::optional<size_t> preferred,
              FunctionRef<std::optional<Barred>(size_t)> why_barred);

}  // namespace nos::scheduling
