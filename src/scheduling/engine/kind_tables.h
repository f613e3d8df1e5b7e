// The tables (kind_table.h) of the kinds of pods that were in use lately, over one snapshot that
// changes. Internal to Engine and Rehearsal.
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
#include "scheduling/engine/kind_table.h"

namespace nos::scheduling {

class KindTables {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // A pod has come to the node, or left it. Without a pod: the node itself is another one.
  void Note(const cluster::ClusterSnapshot& snapshot, std::string_view node, Pod pod, bool came);
  // Some node has got or lost images.
  void NoteImages() { ++images_; }
  // There are other nodes, or other labels or taints on them.
  void Forget();
  // Scores learn from something else now.
  void ForgetScores() { kinds_.clear(); }

  // Up to date. `around`: a version of what surrounds pods and nodes. Valid until the next call of
  // anything here.
  KindTable& For(const Framework& framework, const Pod& pod,
                 const cluster::ClusterSnapshot& snapshot, const CycleState& learnt,
                 uint64_t around);

  uint64_t made() const { return made_; }

 private:
  static constexpr size_t kMostKinds = 64;

  // What tables have to follow.
  struct Change {
    size_t node;
    Pod pod;
    bool came = false;
  };
  struct Kind {
    std::unique_ptr<KindTable> table;
    uint64_t at = 0;      // of the changes, those before are in it
    uint64_t around = 0;  // version of the surroundings
    uint64_t images = 0;  // as images_
    // Resources that had names, if it asks for one that had none.
    std::optional<size_t> names = {};
    uint64_t used = 0;
  };

  bool CatchUp(Kind& kind, const cluster::ClusterSnapshot& snapshot, uint64_t around);

  DomainIndex domains_;
  // Changes since change number first_change_.
  std::deque<Change> changes_;
  uint64_t first_change_ = 0;
  std::unordered_map<std::string, Kind> kinds_;
  uint64_t uses_ = 0, made_ = 0;
  uint64_t images_ = 0;  // counts changes of which images nodes have
};

// A node that would do is kept from the pod.
struct Barred {
  Verdict verdict;
  const Plugin* by = nullptr;
};
struct Choice {
  std::optional<size_t> node;  // none: none will do
  int64_t score = 0;
  std::vector<Barred> barred;  // of nodes that would have been chosen before
};
// `preferred` if it fits there, else the best that nothing bars: only those that would be chosen
// are asked about.
Choice Choose(KindTable& table, std::optional<size_t> preferred,
              FunctionRef<std::optional<Barred>(size_t)> why_barred);

}  // namespace nos::scheduling
