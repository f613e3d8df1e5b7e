// Our own writes to objects, for as long as the cache lags behind them.
//
//   ReadYourWrites<cluster::Node> nodes;
//   nodes.Wrote(patched);                                  // as the API server returned it
//   const auto node = nodes.Newest(view.nodes.Get(name));  // never older than our write
//
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube/cache.h"

namespace nos::reconcile {

// T has a `meta` with uid and resource version.
template <typename T>
class ReadYourWrites {
 public:
  using Object = std::shared_ptr<const T>;

  void Wrote(Object written) {
    std::string key = KeyOf(*written);
    written_.insert_or_assign(std::move(key), std::move(written));
  }

  // Our write if it is newer than `cached`, else `cached`; another object of the same name is
  // newer. Null: the object does not exist.
  Object Newest(Object cached) {
    if (cached == nullptr) return cached;
    const auto ours = written_.find(KeyOf(*cached));
    if (ours == written_.end()) return cached;
    if (IsNewer(*ours->second, *cached)) return ours->second;
    written_.erase(ours);
    return cached;
  }

  // The same for all objects of a kind. Forgets writes to other objects: they were deleted.
  std::vector<Object> Newest(std::vector<Object> cached) {
    std::map<std::string, Object> ahead;
    for (Object& object : cached) {
      const auto ours = written_.find(KeyOf(*object));
      if (ours == written_.end() || !IsNewer(*ours->second, *object)) continue;
      object = ours->second;
      ahead.insert(written_.extract(ours));
    }
    written_ = std::move(ahead);
    return cached;
  }

  size_t size() const { return written_.size(); }

 private:
  static std::string KeyOf(const T& object) { return object.meta.ns + "/" + object.meta.name; }
  static bool IsNewer(const T& ours, const T& cached) {
    return ours.meta.uid == cached.meta.uid &&
           !kube::NotNewer(ours.meta.resource_version, cached.meta.resource_version);
  }

  std::map<std::string, Object> written_;
};

}  // namespace nos::reconcile
