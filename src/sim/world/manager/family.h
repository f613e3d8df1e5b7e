// Which object controls which: pods, ReplicaSets and ControllerRevisions by their owner, and pods
// and ReplicaSets without one. Each update costs the logarithm of the number of objects. One
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/world/manager/decisions.h"

namespace nos::sim {

// The owner with controller set; null if there is none.
const cluster::OwnerReference* ControllerOf(const cluster::ObjectMeta& meta);

// Objects of one kind. T has `meta`.
template <typename T>
class Family {
 public:
  using Ptr = std::shared_ptr<const T>;

  // Follows a change; the arguments are those of a handler of kube::Cache.
  void See(const Ptr& before, const Ptr& after) {
    if (before != nullptr) Forget(*before);
    if (after == nullptr) return;
    const cluster::OwnerReference* owner = ControllerOf(after->meta);
    if (owner != nullptr) {
      owned_[owner->uid][Key(*after)] = after;
    } else {
      free_[after->meta.ns][after->meta.name] = after;
    }
  }
  std::vector<Ptr> Of(const std::string& uid) const { return Values(owned_, uid); }
  // Returns the objects of the namespace that have no controller.
  std::vector<Ptr> FreeIn(const std::string& ns) const { return Values(free_, ns); }

 private:
  using Group = std::map<std::string, Ptr>;

  static std::string Key(const T& object) { return object.meta.ns + "/" + object.meta.name; }
  static std::vector<Ptr> Values(const std::map<std::string, Group>& groups,
                                 const std::string& name) {
    std::vector<Ptr> values;
    const auto found = groups.find(name);
    if (found == groups.end()) return values;
    values.reserve(found->second.size());
    for (const auto& [key, object] : found->second) values.push_back(object);
    return values;
  }
  static void Erase(std::map<std::string, Group>& groups, const std::string& name,
                    const std::string& key) {
    const auto found = groups.find(name);
    if (found == groups.end()) return;
    found->second.erase(key);
    if (found->second.empty()) groups.erase(found);
  }
  void Forget(const T& object) {
    const cluster::OwnerReference* owner = ControllerOf(object.meta);
    if (owner != nullptr) {
      Erase(owned_, owner->uid, Key(object));
    } else {
      Erase(free_, object.meta.ns, object.meta.name);
    }
  }

  std::map<std::string, Group> owned_, free_;
};

}  // namespace nos::sim
