#include "dra/pools/table.h"

#include <algorithm>

namespace nos::dra {

PoolTable::Entry& PoolTable::EntryOf(const PoolId& id) {
  const auto found = pools_.find(id);
  if (found != pools_.end()) return found->second;
  return pools_.emplace(id, Entry{Pool(id, features_, rules_), 0, {}}).first->second;
}

void PoolTable::Place(const PoolId& id, Entry& entry, const std::string& node, int change) {
  const auto found = entry.slices_on.try_emplace(node, 0).first;
  found->second += change;
  if (found->second > 0) {
    pools_on_[node].insert(id);
    return;
  }
  entry.slices_on.erase(found);
  const auto on = pools_on_.find(node);
  if (on == pools_on_.end()) return;
  on->second.erase(id);
  if (on->second.empty()) pools_on_.erase(on);
}

void PoolTable::Put(SlicePointer slice) {
  Remove(slice->name);
  const PoolId id{slice->driver, slice->pool};
  Entry& entry = EntryOf(id);
  pool_of_slice_[slice->name] = id;
  Place(id, entry, slice->nodes.node_name, 1);
  entry.pool.Put(std::move(slice));
  entry.changed = ++changes_;
}

void PoolTable::Remove(const std::string& slice) {
  const auto found = pool_of_slice_.find(slice);
  if (found == pool_of_slice_.end()) return;
  const PoolId id = found->second;
  pool_of_slice_.erase(found);
  Entry& entry = EntryOf(id);
  Place(id, entry, entry.pool.slices().at(slice)->nodes.node_name, -1);
  entry.pool.Remove(slice);
  entry.changed = ++changes_;
  DropIfEmpty(id);
}

void PoolTable::DropIfEmpty(const PoolId& id) {
  const auto found = pools_.find(id);
  if (found != pools_.end() && found->second.pool.empty()) pools_.erase(found);
}

void PoolTable::SetRules(std::vector<DeviceTaintRule> rules) {
  // Generations refer to the old rules.
  for (auto& [id, entry] : pools_) {
    entry.pool.RulesChanged();
    entry.changed = changes_ + 1;
  }
  ++changes_;
  rules_ = std::move(rules);
}

void PoolTable::Allocate(const std::string& claim, const Allocation& allocation) {
  Release(claim);
  std::vector<AllocatedDevice>& devices = claims_[claim];
  for (const AllocatedDevice& device : allocation.devices) {
    if (device.admin()) continue;
    devices.push_back(device);
    EntryOf({device.driver, device.pool}).pool.Take(device);
  }
}

void PoolTable::Release(const std::string& claim) {
  const auto found = claims_.find(claim);
  if (found == claims_.end()) return;
  for (const AllocatedDevice& device : found->second) {
    const PoolId id{device.driver, device.pool};
    EntryOf(id).pool.Give(device);
    DropIfEmpty(id);
  }
  claims_.erase(found);
}

std::set<PoolId> PoolTable::PoolsOf(const std::string& node) const {
  std::set<PoolId> pools;
  for (const std::string& place : {node, std::string()}) {
    const auto found = pools_on_.find(place);
    if (found != pools_on_.end()) pools.insert(found->second.begin(), found->second.end());
  }
  return pools;
}

const NodeView& PoolTable::View(const cluster::Node& node, bool optional_node_operations) {
  std::pair<size_t, uint64_t> stamp;
  bool shared = false;
  for (const std::string& place : {node.meta.name, std::string()}) {
    const auto found = pools_on_.find(place);
    if (found == pools_on_.end()) continue;
    for (const PoolId& id : found->second) {
      ++stamp.first;
      stamp.second = std::max(stamp.second, pools_.at(id).changed);
      shared = shared || place.empty();
    }
  }
  CachedView& cached = views_[node.meta.name];
  const bool same_labels = !shared || cached.labels == node.meta.labels;
  if (cached.stamp != stamp || !same_labels || cached.view.node.empty()) {
    cached.view = Build(node, PoolsOf(node.meta.name));
    cached.stamp = stamp;
    if (shared) cached.labels = node.meta.labels;
  }
  cached.view.optional_node_operations = optional_node_operations;
  return cached.view;
}

NodeView PoolTable::Build(const cluster::Node& node, const std::set<PoolId>& pools) {
  std::vector<Pool::Part> parts;
  for (const PoolId& id : pools) {
    if (auto part = pools_.at(id).pool.For(node)) parts.push_back(std::move(*part));
  }
  std::stable_partition(parts.begin(), parts.end(),
                        [](const Pool::Part& part) { return !part.binding_conditions; });
  NodeView view;
  view.node = node.meta.name;
  for (Pool::Part& part : parts) {
    const auto pool = static_cast<uint32_t>(view.pools.size());
    for (const uint32_t index : part.devices) view.devices.push_back({pool, index});
    view.pools.push_back(std::move(part.view));
  }
  return view;
}

Inventory::Inventory(const Features& features, const DeviceExpressions& expressions)
    : pools_(std::make_unique<PoolTable>(features, expressions)) {}
Inventory::~Inventory() = default;
void Inventory::PutSlice(std::shared_ptr<const ResourceSlice> slice) {
  ++version_;
  pools_->Put(std::move(slice));
}
void Inventory::RemoveSlice(const std::string& name) {
  ++version_;
  pools_->Remove(name);
}
void Inventory::SetTaintRules(std::vector<DeviceTaintRule> rules) {
  ++version_;
  pools_->SetRules(std::move(rules));
}
void Inventory::Allocate(const std::string& claim_uid, const Allocation& allocation) {
  ++version_;
  pools_->Allocate(claim_uid, allocation);
}
void Inventory::Release(const std::string& claim_uid) {
  ++version_;
  pools_->Release(claim_uid);
}
const NodeView& Inventory::View(const cluster::Node& node, bool optional_node_operations) const {
  return pools_->View(node, optional_node_operations);
}
void Inventory::ForgetNode(const std::string& name) { pools_->ForgetNode(name); }
const Features& Inventory::features() const { return pools_->features(); }
const DeviceExpressions& Inventory::expressions() const { return pools_->expressions(); }

}  // namespace nos::dra
