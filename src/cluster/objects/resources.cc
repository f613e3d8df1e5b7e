#include "cluster/resources.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "cluster/resource_names.h"
#include "gpu/shares.h"

namespace nos::cluster {
namespace {

constexpr size_t kMaxAsked = 4096;  // names that only pods request

// Names are stored in a deque, so that references to them and views into them stay valid.
class Names {
 public:
  Names() {
    for (const char* name : {"cpu", "memory", "ephemeral-storage", "pods"}) Append(name);
  }

  ResourceId Intern(std::string_view name) {
    if (const ResourceId id = Find(name); id != kUnknownResource) return id;
    const std::unique_lock lock(mutex_);
    if (const auto it = ids_.find(name); it != ids_.end()) return it->second;
    return names_.size() < kUnknownResource ? Append(name) : kUnknownResource;
  }

  ResourceId InternAsked(std::string_view name) {
    if (const ResourceId id = Find(name); id != kUnknownResource || asked_ >= kMaxAsked) return id;
    ++asked_;
    return Intern(name);
  }

  // kUnknownResource if the name has no id.
  ResourceId Find(std::string_view name) {
    const std::shared_lock lock(mutex_);
    const auto it = ids_.find(name);
    return it == ids_.end() ? kUnknownResource : it->second;
  }

  size_t Count() {
    const std::shared_lock lock(mutex_);
    return names_.size();
  }

  bool IsSlice(ResourceId id) const { return slice_[id].load(std::memory_order_relaxed); }

  const std::string& Name(ResourceId id) {
    static const std::string unknown = "(a resource that no node offers)";
    const std::shared_lock lock(mutex_);
    return id < names_.size() ? names_[id] : unknown;
  }

 private:
  ResourceId Append(std::string_view name) {
    const auto id = static_cast<ResourceId>(names_.size());
    slice_[id].store(IsSliceResource(name), std::memory_order_relaxed);
    ids_.emplace(names_.emplace_back(name), id);
    return id;
  }

  std::atomic<size_t> asked_ = 0;  // names that a pod requested before a node offered them
  std::shared_mutex mutex_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, ResourceId> ids_;
  std::array<std::atomic<bool>, kUnknownResource + 1> slice_{};
};

Names& AllNames() {
  static Names names;
  return names;
}

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

int64_t SaturatingSubtract(int64_t a, int64_t b) {
  int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

bool IsEnd(int64_t amount) {
  using Limits = std::numeric_limits<int64_t>;
  return amount == Limits::max() || amount == Limits::min();
}

constexpr auto kById = [](const auto& entry, ResourceId id) { return entry.first < id; };

}  // namespace

ResourceId InternResource(std::string_view name) { return AllNames().Intern(name); }
const std::string& ResourceName(ResourceId id) { return AllNames().Name(id); }
bool IsSliceResource(ResourceId id) { return AllNames().IsSlice(id); }
bool IsSliceResource(std::string_view name) {
  return name.starts_with(kMigResourcePrefix) || name == gpu::kTimeSlice ||
         gpu::IsShareResource(name);
}
ResourceId InternAskedResource(std::string_view name) { return AllNames().InternAsked(name); }
size_t CountOfResourceNames() { return AllNames().Count(); }

std::vector<std::string> UnknownResourcesOf(const Pod& pod) {
  std::vector<std::string> unknown;
  for (const auto& [name, quantity] : PodRequests(pod)) {
    const bool asked = quantity != Quantity();
    if (asked && AllNames().Find(name) == kUnknownResource) unknown.push_back(name);
  }
  return unknown;
}

ResourceVector ResourceVector::From(const ResourceList& list) {
  ResourceVector vector;
  for (const auto& [name, quantity] : list) {
    const ResourceId id = InternResource(name);
    const int64_t amount = id == kCpu ? quantity.MilliValue() : quantity.Value();
    vector.Set(id, SaturatingAdd(vector.Get(id), amount));
  }
  return vector;
}

int64_t ResourceVector::Get(ResourceId id) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), id, kById);
  return it != entries_.end() && it->first == id ? it->second : 0;
}

void ResourceVector::Set(ResourceId id, int64_t amount) {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), id, kById);
  const bool found = it != entries_.end() && it->first == id;
  if (amount == 0) {
    if (found) entries_.erase(it);
  } else if (found) {
    it->second = amount;
  } else {
    entries_.insert(it, {id, amount});
  }
}

void ResourceVector::Add(const ResourceVector& other) {
  for (const auto& [id, amount] : other.entries_) Set(id, SaturatingAdd(Get(id), amount));
}

void ResourceVector::Subtract(const ResourceVector& other) {
  for (const auto& [id, amount] : other.entries_) Set(id, SaturatingSubtract(Get(id), amount));
}

bool ResourceVector::HasStopped() const {
  return std::ranges::any_of(entries_, [](const auto& entry) { return IsEnd(entry.second); });
}

bool ScoredRequests::HasStopped() const { return IsEnd(cpu) || IsEnd(memory); }

void ScoredRequests::Add(const ScoredRequests& other, int sign) {
  const auto add = sign > 0 ? SaturatingAdd : SaturatingSubtract;
  cpu = add(cpu, other.cpu);
  memory = add(memory, other.memory);
}

ScoredRequests ScoredRequestsOf(const Pod& pod) {
  static const ResourceList kWhenMissing = {{"cpu", *Quantity::Parse("100m")},
                                            {"memory", *Quantity::Parse("200Mi")}};
  ResourceList requests = PodRequests(pod, kWhenMissing);
  return {requests["cpu"].MilliValue(), requests["memory"].Value()};
}

ResourceVector RequestsOf(const Pod& pod) {
  ResourceVector requests;
  for (const auto& [name, quantity] : PodRequests(pod)) {
    if (quantity == Quantity()) continue;
    const ResourceId id = InternAskedResource(name);
    const int64_t amount = id == kCpu ? quantity.MilliValue() : quantity.Value();
    requests.Set(id, SaturatingAdd(requests.Get(id), amount));
  }
  requests.Set(kPods, 1);
  return requests;
}

}  // namespace nos::cluster
