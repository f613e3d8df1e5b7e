#include "scheduling/engine/kind_tables.h"

#include <algorithm>
#include <utility>

#include "cluster/resource_names.h"
#include "scheduling/engine/kind_table.h"
#include "scheduling/plugins/dynamic_resources/plugin.h"
#include "scheduling/pod_kind.h"

namespace nos::scheduling {

using cluster::ClusterSnapshot;

KindTables::KindTables() = default;
KindTables::~KindTables() = default;
KindTables::KindTables(KindTables&&) noexcept = default;
KindTables& KindTables::operator=(KindTables&&) noexcept = default;

// Records only the position of the change; tables read the rest from the snapshot.
void KindTables::Note(const ClusterSnapshot& snapshot, std::string_view node, Pod pod, bool came) {
  if (kinds_.empty()) return;
  const auto index = snapshot.IndexOf(node);
  if (!index) return;
  changes_.push_back({*index, std::move(pod), came});
  // Rebuilding a table is cheaper than following this many changes.
  if (changes_.size() > 4 * snapshot.size() + 1000) {
    changes_.pop_front();
    ++first_change_;
  }
}

void KindTables::Forget() {
  domains_.Clear();
  kinds_.clear();
  changes_.clear();
  first_change_ = 0;
}

void KindTables::ForgetScores() { kinds_.clear(); }

// Applies the changes that the table has not seen. False: the table must be rebuilt.
bool KindTables::CatchUp(Kind& kind, const ClusterSnapshot& snapshot, uint64_t context) {
  const uint64_t now = first_change_ + changes_.size();
  if (kind.names && *kind.names != cluster::CountOfResourceNames()) return false;
  if (kind.at < first_change_) return false;
  for (; kind.at < now; ++kind.at) {
    const Change& change = changes_[kind.at - first_change_];
    if (change.pod == nullptr) {
      kind.table->Touch(change.node);
    } else if (!kind.table->Follow(*change.pod, change.came, change.node, snapshot, domains_)) {
      return false;
    }
  }
  if (kind.images != images_) kind.table->FollowImages();
  kind.images = images_;
  return std::exchange(kind.context, context) == context || kind.table->FollowContext(snapshot);
}

KindTable& KindTables::For(const Framework& framework, const Pod& pod,
                           const ClusterSnapshot& snapshot, const CycleState& precomputed,
                           uint64_t context) {
  std::string text = KindBesideClaims(*pod);
  if (MayTakeDevices(*pod)) AppendClaims(*pod, snapshot.context(), text);
  const Framework* profile = &framework;
  text.append(reinterpret_cast<const char*>(&profile), sizeof(const Framework*));
  auto found = kinds_.find(text);
  if (found == kinds_.end()) {
    if (kinds_.size() >= kMaxKinds) {
      kinds_.erase(std::ranges::min_element(
          kinds_, [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    }
    found = kinds_.emplace(text, Kind()).first;
  }
  Kind& kind = found->second;
  kind.used = ++uses_;
  if (kind.table == nullptr || !CatchUp(kind, snapshot, context)) {
    kind.table = std::make_unique<KindTable>(framework, pod, snapshot, precomputed);
    kind.at = first_change_ + changes_.size();
    kind.context = context;
    kind.images = images_;
    kind.names.reset();
    if (cluster::RequestsOf(*pod).Get(cluster::kUnknownResource) != 0) {
      kind.names = cluster::CountOfResourceNames();
    }
    ++made_;
  }
  kind.table->Refresh(snapshot);
  return *kind.table;
}

Choice Choose(KindTable& table, std::optional<size_t> preferred,
              FunctionRef<std::optional<Barred>(size_t)> why_barred) {
  ScoreTree& tree = table.tree();
  std::optional<size_t> candidate = preferred;
  if (!candidate || !table.Fits(*candidate)) candidate = tree.Best();
  Choice choice;
  std::vector<std::pair<size_t, ScoreTree::Entry>> taken_out;
  for (; candidate; candidate = tree.Best()) {
    std::optional<Barred> why = why_barred(*candidate);
    if (!why) break;
    choice.barred.push_back(*std::move(why));
    taken_out.emplace_back(*candidate, tree.entry(*candidate));
    tree.Set(*candidate, {});
  }
  choice.node = candidate;
  if (candidate) choice.score = tree.entry(*candidate).score;
  for (const auto& [node, entry] : taken_out) tree.Set(node, entry);
  return choice;
}

}  // namespace nos::scheduling
