// All objects, by storage and key, with the version counter and the indexes that deletion needs.
// Every write is appended to the hub, which serves watches and older list pages. Not thread-safe.
//
//   Store store(hub, seed);
//   const ObjectRef stored = store.Put({"pods", {"default", "a"}}, object);
//   for (const Place& dependent : store.DependentsOf(uid)) ...
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "sim/apiserver/storage/watch_hub.h"

namespace nos::sim {

using Objects = std::map<ObjectKey, ObjectRef>;

// The location of an object.
struct Place {
  std::string storage;
  ObjectKey key;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class Store {
 public:
  // `seed` determines all uids and generated names.
  Store(std::shared_ptr<WatchHub> hub, uint64_t seed) : hub_(std::move(hub)), random_(seed) {}

  uint64_t version() const { return version_; }
  size_t size() const { return size_; }
  const Objects& All(const std::string& storage) const;
  // Null if there is no such object.
  ObjectRef Get(const Place& place) const;
  bool AnyIn(std::string_view ns) const;
  std::vector<Place> AllIn(std::string_view ns) const;
  std::optional<Place> ByUid(std::string_view uid) const;
  // Objects with this uid in their ownerReferences.
  std::set<Place> DependentsOf(std::string_view uid) const;

  // Creates or replaces an object and sets metadata.resourceVersion. Returns the stored object.
  ObjectRef Put(const Place& place, Json object);
  // REQUIRES: the object exists. Returns its last state, with the version of its removal.
  ObjectRef Remove(const Place& place);
  // Expired lists the object after `when`, until it is removed. A later call replaces the time.
  void ExpireAt(const Place& place, Time when);
  std::vector<Place> Expired(Time now) const;
  // Removes a storage whose type is no longer served, and ends its watches. REQUIRES: it is empty.
  void Drop(const std::string& storage);

  std::string NewUid();
  // Five characters, for `generateName`.
  std::string NewSuffix();

 private:
  void Index(const Place& place, const Json& object);
  void Unindex(const Place& place, const Json& object);
  void NeverExpire(const Place& place);

  std::shared_ptr<WatchHub> hub_;
  Random random_;
  uint64_t version_ = 0;
  size_t size_ = 0;
  std::map<std::string, Objects> objects_;
  std::map<std::string, Place, std::less<>> by_uid_;
  std::map<std::string, std::set<Place>, std::less<>> dependents_;
  std::map<Place, Time> expires_;
  std::set<std::pair<Time, Place>> by_expiry_;
};

// The uids in metadata.ownerReferences.
std::vector<std::string_view> OwnersOf(const Json& object);

}  // namespace nos::sim
