// Sums by topology domain: a domain is the set of nodes with the same value of a label.
//
//   DomainSums sums;
//   sums.Add(node, "topology.kubernetes.io/zone", 1);
//   sums.At("topology.kubernetes.io/zone", "zone-a");  // 1
//
// Designed for few keys and many values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/objects.h"

namespace nos::scheduling {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <typename T>
using ByText = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

// Null: the node lacks the label.
const std::string* LabelOf(const cluster::Node& node, std::string_view key);

class DomainSums {
 public:
  struct Change {
    std::string_view value;  // of the node's label
    int64_t before = 0, after = 0;
  };

  // Adds to the node's domain. Absent: the node is in no domain of this key.
  std::optional<Change> Add(const cluster::Node& node, std::string_view key, int64_t amount);
  int64_t At(std::string_view key, std::string_view value) const;
  // Sum over the node's domains of all keys.
  int64_t Total(const cluster::Node& node) const;
  bool AnyPositive(const cluster::Node& node) const;
  // True if all sums are 0.
  bool empty() const { return domains_ == 0; }

 private:
  struct Key {
    std::string name;
    ByText<int64_t> sums;  // without zeros
  };
  const Key* Find(std::string_view name) const;

  std::vector<Key> keys_;
  size_t domains_ = 0;
};

}  // namespace nos::scheduling
