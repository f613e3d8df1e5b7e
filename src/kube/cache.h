// A typed local copy of a collection, kept current by a Reflector.
//
//   Cache<cluster::Pod> pods(kPods, cluster::ReadPod);
//   pods.Pump(client, clock.Now());
//   auto pod = pods.Get("default/a");          // shared_ptr<const Pod> or null
//   auto all = pods.Snapshot();                // sorted by key; later changes do not affect it
//
// An object that cannot be decoded is skipped and named in Problems(); its last decoded version
// stays in the cache. An event older than the cached object is dropped: resourceVersions are
// compared as numbers if both are numeric, otherwise the order of arrival counts.
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
std::string KeyOf(std::string_view ns, std::string_view name);
// True if version `a` is certainly older than, or the same as, `b`.
bool NotNewer(std::string_view a, std::string_view b);

// Objects have `meta`, or these fields themselves.
template <typename T>
const std::string& NameOf(const T& object) {
  if constexpr (requires { object.meta; }) {
    return object.meta.name;
  } else {
    return object.name;
  }
}
template <typename T>
const std::string& VersionOf(const T& object) {
  if constexpr (requires { object.meta; }) {
    return object.meta.resource_version;
  } else {
    return object.resource_version;
  }
}
// "" for an object that has no namespace.
template <typename T>
std::string_view NamespaceOf(const T& object) {
  if constexpr (requires { object.meta; }) {
    return object.meta.ns;
  } else if constexpr (requires { object.ns; }) {
    return object.ns;
  } else {
    return "";
  }
}
template <typename T>
std::string KeyOf(const T& object) {
  return KeyOf(NamespaceOf(object), NameOf(object));
}

template <typename T>
class Cache final : private ReflectorSink {
 public:
  using Object = std::shared_ptr<const T>;
  using Objects = std::shared_ptr<const std::vector<Object>>;
  // Fills `to` as far as possible even on an error: it then has at least namespace, name and
  // resource version.
  using Decode = std::function<Status(JsonSource, T& to)>;
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
    return found == entries_.end() ? nullptr : found->second;
  }
  Objects Snapshot() const {
    const std::scoped_lock lock(mutex_);
    if (snapshot_ == nullptr) snapshot_ = Collect();
    return snapshot_;
  }
  // Grows with every change, including changes of Problems().
  uint64_t Version() const {
    const std::scoped_lock lock(mutex_);
    return version_;
  }
  // key -> reason why the object could not be read.
  std::map<std::string, std::string> Problems() const {
    const std::scoped_lock lock(mutex_);
    return problems_;
  }

 private:
  void BeginList() override {
    listing_ = true;
    listed_.clear();
  }
  void EndList() override;
  std::string Upsert(JsonSource object) override;
  std::string Remove(JsonSource object) override;
  void RemoveKey(const std::string& key, std::string_view version);
  bool IsStale(const std::string& key, std::string_view version, bool deletion) const;
  Objects Collect() const;

  static constexpr size_t kMaxTombstones = 10'000;

  Decode decode_;
  Reflector reflector_;
  bool listing_ = false;
  std::set<std::string> listed_;  // keys seen in the current list
  std::vector<Handler> handlers_;
  mutable std::mutex mutex_;
  std::map<std::string, Object> entries_;
  std::map<std::string, std::string> tombstones_;  // key -> version of its deletion
  std::map<std::string, std::string> problems_;
  mutable Objects snapshot_;
  uint64_t version_ = 0;
};

template <typename T>
void Cache<T>::EndList() {
  listing_ = false;
  std::vector<std::string> gone;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, object] : entries_) {
      if (!listed_.contains(key)) gone.push_back(key);
    }
    tombstones_.clear();
    version_ +=
        std::erase_if(problems_, [&](const auto& item) { return !listed_.contains(item.first); });
  }
  listed_.clear();
  for (const std::string& key : gone) RemoveKey(key, "");
}

template <typename T>
std::string Cache<T>::Upsert(JsonSource object) {
  auto fresh = std::make_shared<T>();
  const Status read = decode_(object, *fresh);
  std::string version = VersionOf(*fresh);
  const std::string key = KeyOf(*fresh);
  if (listing_) listed_.insert(key);
  if (IsStale(key, version, false)) return version;
  Object before, after;
  {
    const std::scoped_lock lock(mutex_);
    if (!read.ok()) {
      std::string& problem = problems_[key];
      if (problem != read.message()) ++version_;
      problem = read.message();
      return version;
    }
    problems_.erase(key);
    tombstones_.erase(key);
    Object& entry = entries_[key];
    before = std::exchange(entry, std::move(fresh));
    after = entry;
    snapshot_ = nullptr;
    ++version_;
  }
  for (const Handler& handler : handlers_) handler(key, before, after);
  return version;
}

template <typename T>
std::string Cache<T>::Remove(JsonSource object) {
  T last;
  (void)decode_(object, last);  // a deletion needs only the key
  const std::string key = KeyOf(last);
  const std::string version = VersionOf(last);
  if (!IsStale(key, version, true)) RemoveKey(key, version);
  return version;
}

template <typename T>
void Cache<T>::RemoveKey(const std::string& key, std::string_view version) {
  Object before;
  {
    const std::scoped_lock lock(mutex_);
    version_ += problems_.erase(key);
    if (!version.empty()) tombstones_[key] = version;
    if (tombstones_.size() > kMaxTombstones) tombstones_.erase(tombstones_.begin());
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    before = std::move(found->second);
    entries_.erase(found);
    snapshot_ = nullptr;
    ++version_;
  }
  for (const Handler& handler : handlers_) handler(key, before, nullptr);
}

// An update with the cached version itself is a repetition; a deletion may carry that version.
template <typename T>
bool Cache<T>::IsStale(const std::string& key, std::string_view version, bool deletion) const {
  const std::scoped_lock lock(mutex_);
  if (const auto known = entries_.find(key); known != entries_.end()) {
    const std::string& newest = VersionOf(*known->second);
    return NotNewer(version, newest) && !(deletion && version == newest);
  }
  const auto buried = tombstones_.find(key);
  return buried != tombstones_.end() && NotNewer(version, buried->second);
}

template <typename T>
typename Cache<T>::Objects Cache<T>::Collect() const {
  auto all = std::make_shared<std::vector<Object>>();
  all->reserve(entries_.size());
  for (const auto& [key, object] : entries_) all->push_back(object);
  return all;
}

}  // namespace nos::kube
