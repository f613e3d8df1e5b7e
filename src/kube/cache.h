// A typed local copy of a collection, kept current by a Reflector.
//
//   Cache<cluster::Pod> pods(kPods, cluster::DecodePod);
//   pods.Pump(client, clock.Now());
//   auto pod = pods.Get("default/a");          // shared_ptr<const Pod> or null
//   auto all = pods.Snapshot();                // sorted by key; stays as it is
//
// An object that cannot be decoded is skipped and named in Problems(); what was known of it before
// stays. An event older than what is known of the object is dropped (resourceVersions are compared
// as numbers when both are; else the order of arrival counts).
// Pump is for one owner thread; Get, Snapshot, Version and Problems are thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kube/reflector.h"

namespace nos::kube {

// "ns/name", or "name" for cluster-scoped objects.
std::string KeyOf(const Json& object);
// Whether version `a` is certainly older than (or the same as) `b`.
bool NotNewer(std::string_view a, std::string_view b);

template <typename T>
class Cache final : private ReflectorSink {
 public:
  using Object = std::shared_ptr<const T>;
  using Objects = std::shared_ptr<const std::vector<Object>>;
  using Decode = std::function<Result<T>(const Json&)>;
  // `before` null: added; `after` null: deleted. Called from Pump, after the cache has changed.
  using Handler =
      std::function<void(const std::string& key, const Object& before, const Object& after)>;

  Cache(Resource resource, Decode decode, ReflectorOptions options = {})
      : decode_(std::move(decode)), reflector_(std::move(resource), std::move(options)) {}

  void AddHandler(Handler handler) { handlers_.push_back(std::move(handler)); }
  // Returns whether anything changed.
  bool Pump(Client& client, Time now) {
    const uint64_t before = Version();
    reflector_.Pump(client, now, *this);
    return Version() != before;
  }
  bool synced() const { return reflector_.synced(); }
  const Reflector& reflector() const { return reflector_; }
  Reflector& reflector() { return reflector_; }

  Object Get(const std::string& key) const {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.object;
  }
  Objects Snapshot() const {
    const std::scoped_lock lock(mutex_);
    if (snapshot_ == nullptr) snapshot_ = Collect();
    return snapshot_;
  }
  // Grows with every change.
  uint64_t Version() const {
    const std::scoped_lock lock(mutex_);
    return version_;
  }
  // key -> why the object could not be read.
  std::map<std::string, std::string> Problems() const {
    const std::scoped_lock lock(mutex_);
    return problems_;
  }

 private:
  struct Entry {
    Object object;
    std::string version;
  };

  void Replace(const std::vector<Json>& items) override;
  void Upsert(const Json& object) override;
  void Remove(const Json& object) override;
  void RemoveKey(const std::string& key, std::string_view version);
  bool IsStale(const std::string& key, std::string_view version, bool deletion) const;
  Objects Collect() const;

  static constexpr size_t kMaxTombstones = 10'000;

  Decode decode_;
  Reflector reflector_;
  std::vector<Handler> handlers_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> tombstones_;  // key -> version of its deletion
  std::map<std::string, std::string> problems_;
  mutable Objects snapshot_;
  uint64_t version_ = 0;
};

template <typename T>
void Cache<T>::Replace(const std::vector<Json>& items) {
  std::set<std::string> present;
  for (const Json& item : items) {
    present.insert(KeyOf(item));
    Upsert(item);
  }
  std::vector<std::string> gone;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      if (!present.contains(key)) gone.push_back(key);
    }
    tombstones_.clear();
    std::erase_if(problems_, [&](const auto& item) { return !present.contains(item.first); });
  }
  for (const std::string& key : gone) RemoveKey(key, "");
}

template <typename T>
void Cache<T>::Upsert(const Json& object) {
  const std::string key = KeyOf(object);
  const std::string_view version = FindString(object, "metadata", "resourceVersion");
  if (IsStale(key, version, false)) return;
  Result<T> decoded = decode_(object);
  Object before, after;
  {
    const std::scoped_lock lock(mutex_);
    if (!decoded.ok()) {
      problems_[key] = decoded.status().message();
      return;
    }
    problems_.erase(key);
    tombstones_.erase(key);
    Entry& entry = entries_[key];
    before = std::move(entry.object);
    entry = {std::make_shared<const T>(std::move(decoded).value()), std::string(version)};
    after = entry.object;
    snapshot_ = nullptr;
    ++version_;
  }
  for (const Handler& handler : handlers_) handler(key, before, after);
}

template <typename T>
void Cache<T>::Remove(const Json& object) {
  const std::string key = KeyOf(object);
  const std::string_view version = FindString(object, "metadata", "resourceVersion");
  if (!IsStale(key, version, true)) RemoveKey(key, version);
}

template <typename T>
void Cache<T>::RemoveKey(const std::string& key, std::string_view version) {
  Object before;
  {
    const std::scoped_lock lock(mutex_);
    problems_.erase(key);
    if (!version.empty()) tombstones_[key] = version;
    if (tombstones_.size() > kMaxTombstones) tombstones_.erase(tombstones_.begin());
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    before = std::move(found->second.object);
    entries_.erase(found);
    snapshot_ = nullptr;
    ++version_;
  }
  for (const Handler& handler : handlers_) handler(key, before, nullptr);
}

// An update with the very version that is known is a repetition; a deletion may carry it.
template <typename T>
bool Cache<T>::IsStale(const std::string& key, std::string_view version, bool deletion) const {
  const std::scoped_lock lock(mutex_);
  if (const auto known = entries_.find(key); known != entries_.end()) {
    return NotNewer(version, known->second.version) &&
           !(deletion && version == known->second.version);
  }
  const auto buried = tombstones_.find(key);
  return buried != tombstones_.end() && NotNewer(version, buried->second);
}

template <typename T>
typename Cache<T>::Objects Cache<T>::Collect() const {
  auto all = std::make_shared<std::vector<Object>>();
  all->reserve(entries_.size());
  for (const auto& [key, entry] : entries_) all->push_back(entry.object);
  return all;
}

}  // namespace nos::kube
