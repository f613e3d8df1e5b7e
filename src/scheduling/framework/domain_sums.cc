#include "scheduling/framework/domain_sums.h"

#include <algorithm>

namespace nos::scheduling {

const std::string* LabelOf(const cluster::Node& node, std::string_view key) {
  const auto label = node.meta.labels.find(key);
  return label == node.meta.labels.end() ? nullptr : &label->second;
}

const DomainSums::Key* DomainSums::Find(std::string_view name) const {
  const auto key = std::ranges::find(keys_, name, &Key::name);
  return key == keys_.end() ? nullptr : &*key;
}

std::optional<DomainSums::Change> DomainSums::Add(const cluster::Node& node, std::string_view name,
                                                  int64_t amount) {
  const std::string* value = LabelOf(node, name);
  if (value == nullptr) return std::nullopt;
  auto key = std::ranges::find(keys_, name, &Key::name);
  if (key == keys_.end()) key = keys_.insert(keys_.end(), {std::string(name), {}});
  const auto sum = key->sums.try_emplace(*value, 0).first;
  const Change change{*value, sum->second, sum->second + amount};
  sum->second = change.after;
  if (change.after == 0) key->sums.erase(sum);
  domains_ += static_cast<size_t>(change.after != 0) - static_cast<size_t>(change.before != 0);
  return change;
}

int64_t DomainSums::At(std::string_view name, std::string_view value) const {
  const Key* key = Find(name);
  if (key == nullptr) return 0;
  const auto sum = key->sums.find(value);
  return sum == key->sums.end() ? 0 : sum->second;
}

int64_t DomainSums::Total(const cluster::Node& node) const {
  int64_t total = 0;
  for (const Key& key : keys_) {
    const std::string* value = key.sums.empty() ? nullptr : LabelOf(node, key.name);
    if (value == nullptr) continue;
    const auto sum = key.sums.find(*value);
    if (sum != key.sums.end()) total += sum->second;
  }
  return total;
}

bool DomainSums::AnyPositive(const cluster::Node& node) const {
  return std::ranges::any_of(keys_, [&](const Key& key) {
    const std::string* value = key.sums.empty() ? nullptr : LabelOf(node, key.name);
    if (value == nullptr) return false;
    const auto sum = key.sums.find(*value);
    return sum != key.sums.end() && sum->second > 0;
  });
}

}  // namespace nos::scheduling
