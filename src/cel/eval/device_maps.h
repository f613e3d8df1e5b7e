// The variable `device`: maps over a device's attributes and capacity.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "cel/device.h"
#include "cel/values/map.h"

namespace nos::cel {

// Identifiers to values, of one domain.
class DomainMap final : public MapValue {
 public:
  explicit DomainMap(std::string_view domain) : domain_(domain) {}
  uint64_t size() const override { return entries_.size(); }
  std::optional<Value> Find(const Value& key) const override;
  MapEntry At(uint64_t index) const override { return entries_[index]; }
  std::string_view domain() const { return domain_; }
  void Add(MapEntry entry) { entries_.push_back(entry); }

 private:
  std::string_view domain_;
  std::vector<MapEntry> entries_;
};

// Domains to their maps. A domain that is not there is an empty map.
class DomainsMap final : public MapValue {
 public:
  uint64_t size() const override { return domains_.size(); }
  std::optional<Value> Find(const Value& key) const override;
  bool Contains(const Value& key) const override { return FindDomain(key) != nullptr; }
  MapEntry At(uint64_t index) const override;
  void Add(std::string_view domain, MapEntry entry);

 private:
  const DomainMap* FindDomain(const Value& key) const;
  std::deque<DomainMap> domains_;
};

class DeviceMaps final : public MapValue {
 public:
  // Fills `error` if a value is not valid.
  DeviceMaps(const DeviceSpec& spec, std::string& error);
  uint64_t size() const override { return 4; }
  std::optional<Value> Find(const Value& key) const override;
  MapEntry At(uint64_t index) const override;

 private:
  Value Prepare(const AttributeValue& attribute);
  Value PrepareVersion(const Version& version);
  template <typename T>
  Value PrepareList(const std::vector<T>& elements);

  Arena arena_;
  std::string_view driver_;
  bool allow_multiple_allocations_;
  DomainsMap attributes_;
  DomainsMap capacity_;
};

}  // namespace nos::cel
