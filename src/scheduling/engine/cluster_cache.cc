#include "scheduling/engine/cluster_cache.h"

#include <algorithm>
#include <string>
#include <vector>

#include "dra/context.h"
#include "dra/extended_resources.h"
#include "scheduling/claim_charges.h"
#include "scheduling/framework.h"

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

ClusterCache::ClusterCache(const gpu::Catalogue& catalogue, QuotaCharges& charges,
                           KindTables& tables)
    : charges_(charges),
      tables_(tables),
      snapshot_(cluster::ClusterSnapshot::Build({}, {}, catalogue)) {}

void ClusterCache::Touch(std::string_view node) const {
  if (on_node_) on_node_(node);
}

void ClusterCache::Note(std::string_view node, Pod pod, bool came) {
  Touch(node);
  openings_ += came ? 0 : 1;
  ++changes_;
  tables_.Note(snapshot_, node, std::move(pod), came);
}

void ClusterCache::CountPriority(int32_t priority, int sign) {
  const auto count = priorities_.try_emplace(priority).first;
  sign > 0 ? ++count->second : --count->second;
  if (count->second == 0) priorities_.erase(count);
}

std::optional<int32_t> ClusterCache::LeastPriority() const {
  if (priorities_.empty()) return std::nullopt;
  return priorities_.begin()->first;
}

bool ClusterCache::SetNode(std::shared_ptr<const cluster::Node> node) {
  ++openings_;
  ++changes_;
  const std::string name = node->meta.name;
  Touch(name);
  const NodeInfo* before = snapshot_.Find(name);
  if (before != nullptr) {
    const bool alike = SameToOthers(*before->node, *node);
    const bool same_gpus = quota::GpuWorthOf(before->node.get(), charges_.rules()) ==
                           quota::GpuWorthOf(node.get(), charges_.rules());
    const bool same_labels = before->node->meta.labels == node->meta.labels;
    if (!HasSameImages(*before->node, *node)) tables_.NoteImages();
    snapshot_.SetNode(std::move(node));
    if (devices_ != nullptr && !same_labels) devices_->OnNodes();
    if (!same_gpus) {
      for (const Pod& pod : snapshot_.Find(name)->pods) Count(pod, name);
    }
    if (alike) {
      Note(name, nullptr, false);
    } else {
      tables_.Forget();
    }
    return !same_gpus;
  }
  snapshot_.SetNode(std::move(node));
  if (devices_ != nullptr) devices_->OnNodes();
  tables_.Forget();
  const auto homeless = homeless_.extract(name);
  if (homeless.empty()) return true;
  for (const std::string& key : homeless.mapped()) {
    const auto placed = placed_.find(key);
    if (placed == placed_.end() || placed->second.node != name) continue;
    (void)snapshot_.Bind(placed->second.pod, name);  // the node exists
    Count(placed->second.pod, name);
  }
  snapshot_.SetNode(snapshot_.Find(name)->node);  // recomputes which pod uses which instance
  return true;
}

bool ClusterCache::RemoveNode(const std::string& name) {
  const NodeInfo* info = snapshot_.Find(name);
  if (info == nullptr) return false;
  Touch(name);
  const std::vector<Pod> pods(info->pods.begin(), info->pods.end());
  for (const Pod& pod : pods) homeless_[name].insert(pod->Key());
  snapshot_.RemoveNode(name);
  if (devices_ != nullptr) devices_->OnNodes();
  for (const Pod& pod : pods) Count(pod, name);
  tables_.Forget();
  ++openings_;
  ++changes_;
  return true;
}

void ClusterCache::FollowDevices(std::shared_ptr<dra::DeviceIndex> devices) {
  devices_ = std::move(devices);
  devices_->SetBase(&snapshot_);
  // A context without devices has not been read yet: the index may know them from a stand-by.
  const cluster::ClusterContext& context = snapshot_.context();
  if (context.device_slices.rows().empty() && context.device_claims.rows().empty()) {
    snapshot_.ChangeContext().devices = devices_;
  } else {
    ChangeContext([](cluster::ClusterContext&) {});
  }
  charges_.SetClaims(WithClaims({}, snapshot_).claims);
  for (const auto& [key, placed] : placed_) {
    devices_->CountPlaced(*placed.pod, 1);
    if (!placed.pod->claims.empty()) Count(placed.pod, placed.node);
  }
}

void ClusterCache::FollowDevices(std::string_view kind, const std::string& key) {
  const dra::DeviceIndex::Affected affected = devices_->Follow(kind, key, snapshot_.context());
  ++changes_;
  if (kind == dra::kClaimKind) {
    CountUsersOf(key);
  }
  if (affected.all) snapshot_.ChangeContext();
  openings_ += affected.all ? 1 : 0;
  for (const std::string& node : affected.nodes) Note(node, nullptr, false);
}

void ClusterCache::CountUsersOf(const std::string& claim) {
  for (const Pod& pod : charges_.ledger().UsersOf(claim)) {
    const PlacedPod* placed = FindPlaced(pod->Key());
    if (placed != nullptr) Count(placed->pod, placed->node);
  }
}

Status ClusterCache::SetGpus(const std::string& node, cluster::NodeGpus gpus) {
  NOS_RETURN_IF_ERROR(snapshot_.SetGpus(node, std::move(gpus)));
  Note(node, nullptr, false);
  return Status::Ok();
}

Verdict ClusterCache::Reserve(const Framework& framework, const cluster::Pod& pod,
                              std::string_view node, CycleState& state) {
  for (const ReservePlugin* plugin : framework.reservers()) {
    Verdict verdict = plugin->Reserve(pod, node, snapshot_, state);
    if (verdict.fits()) continue;
    Unreserve(framework, pod, node, state);
    return verdict;
  }
  if (!framework.reservers().empty()) Note(node, nullptr, true);
  return Verdict::Fits();
}

void ClusterCache::Unreserve(const Framework& framework, const cluster::Pod& pod,
                             std::string_view node, CycleState& state) {
  const auto plugins = framework.reservers();
  for (size_t i = plugins.size(); i > 0; --i)
    plugins[i - 1]->Unreserve(pod, node, snapshot_, state);
  Note(node, nullptr, false);
}

void ClusterCache::Count(const Pod& pod, const std::string& node) {
  ++changes_;
  charges_.Count(pod, snapshot_.Find(node));
}

void ClusterCache::Bind(const Pod& pod, const std::string& node) {
  Count(pod, node);
  if (devices_ != nullptr) devices_->CountPlaced(*pod, 1);
  if (!snapshot_.Bind(pod, node).ok()) {
    homeless_[node].insert(pod->Key());
    return;
  }
  Note(node, pod, true);
}

void ClusterCache::Unbind(const cluster::Pod& pod, const std::string& node) {
  ++changes_;
  charges_.Remove(pod);
  const Pod held = placed_.at(pod.Key()).pod;
  if (devices_ != nullptr) devices_->CountPlaced(*held, -1);
  if (snapshot_.Unbind(pod, node).ok()) return Note(node, held, false);
  const auto homeless = homeless_.find(node);
  if (homeless == homeless_.end()) return;
  homeless->second.erase(pod.Key());
  if (homeless->second.empty()) homeless_.erase(homeless);
}

// An allocation that was stored for the pod may have been taken back before the watch, which was
// interrupted, could show it. Without the doubt its devices would stay assumed for ever.
void ClusterCache::DoubtClaimsOf(const cluster::Pod& pod) {
  if (devices_ == nullptr) return;
  std::vector<std::string> keys = dra::ClaimKeysOf(pod);
  keys.push_back(dra::ExtendedClaimKey(pod));
  for (const std::string& key : keys) {
    const auto* assumed = devices_->FindAssumed(key);
    if (assumed != nullptr && assumed->pod_uid == pod.meta.uid) devices_->SetDoubtful(key);
  }
}

void ClusterCache::SetPod(const Pod& pod) {
  const std::string key = pod->Key();
  const auto found = placed_.find(key);
  const bool counts = !pod->node_name.empty() && !pod->Finished();
  if (found == placed_.end()) {
    if (!counts) return;
    Bind(pod, pod->node_name);
    CountPriority(pod->priority, 1);
    placed_.emplace(key, PlacedPod{pod, pod->node_name, false});
    return;
  }
  PlacedPod& placed = found->second;
  const bool successor = placed.pod->meta.uid != pod->meta.uid;
  if (!counts && (!placed.assumed || pod->Finished() || successor)) return RemovePod(key);
  if (!counts) return;
  if (placed.node != pod->node_name || successor) {
    if (successor && !placed.assumed) DoubtClaimsOf(*placed.pod);
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

void ClusterCache::RemovePod(const std::string& key) {
  const auto found = placed_.find(key);
  if (found == placed_.end()) return;
  if (!found->second.assumed) DoubtClaimsOf(*found->second.pod);
  Unbind(*found->second.pod, found->second.node);
  CountPriority(found->second.pod->priority, -1);
  placed_.erase(found);
}

void ClusterCache::Assume(const Pod& pod, const std::string& node) {
  RemovePod(pod->Key());
  Bind(pod, node);
  CountPriority(pod->priority, 1);
  placed_.emplace(pod->Key(), PlacedPod{pod, node, true});
}

void ClusterCache::Forget(const std::string& key) {
  const PlacedPod* placed = FindPlaced(key);
  if (placed != nullptr && placed->assumed) RemovePod(key);
}

}  // namespace nos::scheduling
