// Data that a plugin passes between its extension points, one value per type. Copies share values
// that are held by shared pointers.
//
//   struct Asked { int64_t slots; };     // in the plugin's own namespace
//   state.Set(Asked{3});
//   if (const Asked* asked = state.Get<Asked>()) ...
#pragma once

#include <any>
#include <typeinfo>
#include <utility>
#include <vector>

namespace nos::scheduling {

class CycleState {
 public:
  template <typename T>
  T& Set(T value) {
    std::any* entry = Find(typeid(T));
    if (entry == nullptr) entry = &entries_.emplace_back();
    return entry->emplace<T>(std::move(value));
  }
  // Null: no value of this type was set.
  template <typename T>
  const T* Get() const {
    return const_cast<CycleState*>(this)->Get<T>();
  }
  template <typename T>
  T* Get() {
    std::any* entry = Find(typeid(T));
    return entry == nullptr ? nullptr : std::any_cast<T>(entry);
  }
  // Adds values of `other` whose types are missing here.
  void Merge(const CycleState& other) {
    for (const std::any& entry : other.entries_) {
      if (Find(entry.type()) == nullptr) entries_.push_back(entry);
    }
  }

 private:
  // Linear search: few entries, faster than a map.
  std::any* Find(const std::type_info& type) {
    for (std::any& entry : entries_) {
      if (entry.type() == type) return &entry;
    }
    return nullptr;
  }

  std::vector<std::any> entries_;
};

}  // namespace nos::scheduling
