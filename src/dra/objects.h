// The objects of resource.k8s.io/v1 as typed values, with the fields that an allocator reads. Field
// names and meanings follow k8s.io/api resource/v1 (1.37; older servers leave fields out). Plain
// data; copies are deep except for interned parts, which never change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cluster/constraints.h"
#include "cluster/objects.h"
#include "codec/cursor.h"
#include "dra/interned.h"

namespace nos::dra {

// The value of a device's attribute: one value, or a list of values of one type.
struct Attribute {
  enum class Type : uint8_t { kUnknown, kBool, kInt, kString, kVersion };
  Type type = Type::kUnknown;  // kUnknown: a type that only newer servers know
  bool list = false;
  int64_t number = 0;               // kBool, kInt
  Name text;                        // kString, kVersion
  std::vector<Attribute> elements;  // of a list, none of them a list; never empty
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

using NamedAttribute = std::pair<Name, Attribute>;
struct NamedAttributeHash {
  size_t operator()(const NamedAttribute& attribute) const;
};

// Sorted by name. A name without a domain belongs to the domain of the slice's driver. Behaves like
// a constant vector of NamedAttribute, but each is stored once: the devices of a GPU differ in one
// or two of a dozen attributes.
class Attributes {
 public:
  using Entry = Interned<NamedAttribute, NamedAttributeHash>;
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = NamedAttribute;
    using difference_type = std::ptrdiff_t;
    using pointer = const NamedAttribute*;
    using reference = const NamedAttribute&;
    explicit Iterator(const Entry* at = nullptr) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return &**at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Entry* at_;
  };

  Attributes() = default;
  Attributes(std::initializer_list<NamedAttribute> attributes)
      : entries_(attributes.begin(), attributes.end()) {}
  explicit Attributes(std::vector<NamedAttribute> attributes)
      : entries_(std::make_move_iterator(attributes.begin()),
                 std::make_move_iterator(attributes.end())) {}

  Iterator begin() const { return Iterator(entries_.data()); }
  Iterator end() const { return Iterator(entries_.data() + entries_.size()); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const NamedAttribute& front() const { return *entries_.front(); }
  const std::vector<Entry>& entries() const { return entries_; }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<Entry> entries_;
};

// Rules for how much of a capacity one request consumes.
struct RequestPolicy {
  struct Range {
    std::optional<Quantity> min, max, step;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::optional<Quantity> default_amount;
  std::vector<Quantity> valid_values;  // ascending
  std::optional<Range> valid_range;
  friend bool operator==(const RequestPolicy&, const RequestPolicy&) = default;
};

struct Capacity {
  Quantity value;
  std::optional<RequestPolicy> policy;
  friend bool operator==(const Capacity&, const Capacity&) = default;
};

using Capacities = std::vector<std::pair<Name, Capacity>>;  // sorted by name
using Amounts = std::vector<std::pair<Name, Quantity>>;     // sorted by name

// Counters that a device consumes while it is allocated.
struct Consumption {
  Name counter_set;
  Amounts counters;
  std::vector<Name> groups;  // compatibilityGroups
  friend bool operator==(const Consumption&, const Consumption&) = default;
};
using Consumptions = std::vector<Consumption>;

struct CounterSet {
  Name name;
  Amounts counters;
};

struct AttributesHash {
  size_t operator()(const Attributes& attributes) const;
};
struct CapacitiesHash {
  size_t operator()(const Capacities& capacities) const;
};
struct ConsumptionsHash {
  size_t operator()(const Consumptions& consumptions) const;
};

struct DeviceTaint {
  std::string key, value, effect;  // the effect is None, NoSchedule or NoExecute
  std::optional<Time> added;
  friend bool operator==(const DeviceTaint&, const DeviceTaint&) = default;
};

struct DeviceToleration {
  std::string key, op, value, effect;  // op: Equal (default) or Exists
  std::optional<int64_t> seconds;
  friend bool operator==(const DeviceToleration&, const DeviceToleration&) = default;
};

// True if the toleration matches the taint, whatever the taint's effect does.
bool Tolerates(const DeviceToleration& toleration, const DeviceTaint& taint);

// The nodes from which a device or slice can be used. At most one field is set; none: no node.
struct NodeSelection {
  std::string node_name;
  bool all_nodes = false;
  std::optional<std::vector<cluster::NodeSelectorTerm>> selector;
  bool empty() const { return node_name.empty() && !all_nodes && !selector; }
};

struct Device {
  Name name;
  Interned<Attributes, AttributesHash> attributes;
  Interned<Capacities, CapacitiesHash> capacity;
  Interned<Consumptions, ConsumptionsHash> consumes;
  std::vector<DeviceTaint> taints;
  std::shared_ptr<const NodeSelection> nodes;  // null: the nodes of the slice
  std::vector<std::string> binding_conditions, binding_failure_conditions;
  bool binds_to_node = false;
  bool allow_multiple = false;  // allowMultipleAllocations
};

struct ResourceSlice {
  std::string name, uid, resource_version;
  Name driver, pool;
  int64_t generation = 0;
  int64_t slice_count = 0;  // resourceSliceCount of the pool
  NodeSelection nodes;
  // perDeviceNodeSelection; absent and false differ for servers without partitionable devices.
  std::optional<bool> nodes_per_device;
  std::vector<Device> devices;
  std::vector<CounterSet> shared_counters;
  std::string partition_type_attribute;
  std::vector<std::string> skip_node_operations;
};

// A driver's own parameters, as JSON text.
struct OpaqueConfig {
  std::string driver, parameters;
  friend bool operator==(const OpaqueConfig&, const OpaqueConfig&) = default;
};

struct DeviceClass {
  std::string name, uid, resource_version;
  Time created{};
  // CEL expressions; absent: a kind of selector that only newer servers know.
  std::vector<std::optional<std::string>> selectors;
  std::vector<std::optional<OpaqueConfig>> config;
  std::string extended_resource_name;
};

struct DerivedAttribute {
  std::string name, expression;
};

// `exactly` of a request, or one of its alternatives in `firstAvailable`.
struct ExactRequest {
  std::string name;  // only of an alternative
  std::string device_class;
  std::vector<std::optional<std::string>> selectors;  // as in DeviceClass
  std::string mode;                                   // ExactCount, All
  int64_t count = 0;
  std::optional<bool> admin_access;
  std::vector<DeviceToleration> tolerations;
  std::optional<Amounts> capacity;  // capacity.requests
  std::vector<DerivedAttribute> derived;
};

struct DeviceRequest {
  std::string name;
  std::optional<ExactRequest> exactly;
  std::vector<ExactRequest> first_available;
};

// One of the attributes is set, unless a newer server knows another kind of constraint.
struct DeviceConstraint {
  std::vector<std::string> requests;  // "request" or "request/alternative"; empty: all
  std::optional<std::string> match_attribute, distinct_attribute;
};

struct ClaimConfig {
  std::vector<std::string> requests;  // empty: all
  std::optional<OpaqueConfig> opaque;
};

// One device that a claim has: an element of status.allocation.devices.results.
struct AllocatedDevice {
  std::string request;  // "request" or "request/alternative"
  Name driver, pool, device;
  std::optional<bool> admin_access;
  std::vector<DeviceToleration> tolerations;
  std::vector<std::string> binding_conditions, binding_failure_conditions;
  std::string share_id;  // only of a device that allows multiple allocations
  Amounts consumed_capacity;
  std::vector<std::string> skip_node_operations;
  bool admin() const { return admin_access.value_or(false); }
  friend bool operator==(const AllocatedDevice&, const AllocatedDevice&) = default;
};

struct AllocatedConfig {
  std::string source;  // FromClass, FromClaim
  std::vector<std::string> requests;
  std::optional<OpaqueConfig> opaque;
};

// status.allocation of a claim.
struct Allocation {
  std::vector<AllocatedDevice> devices;
  std::vector<AllocatedConfig> config;
  std::optional<std::vector<cluster::NodeSelectorTerm>> node_selector;  // absent: every node
  std::optional<Time> time;                                             // allocationTimestamp
};

// A user of a claim: a pod or a PodGroup.
struct ClaimConsumer {
  std::string api_group, resource, name, uid;
};

// A driver's report about an allocated device.
struct DeviceStatus {
  struct Condition {
    std::string type, status, reason, message;
  };
  Name driver, pool, device;
  std::string share_id;
  std::vector<Condition> conditions;
};

// Keeps a claim with devices until they are released (resource.k8s.io/v1 Finalizer).
inline constexpr std::string_view kClaimFinalizer = "resource.kubernetes.io/delete-protection";

struct ResourceClaim {
  std::string name, ns, uid, resource_version;
  cluster::StringMap annotations;
  std::vector<std::string> finalizers;
  std::optional<Time> deleted;                        // deletionTimestamp
  std::optional<cluster::OwnerReference> controller;  // the owner for which the claim was made
  Name spec;  // claims with equal specs have equal names here
  std::vector<DeviceRequest> requests;
  std::vector<DeviceConstraint> constraints;
  std::vector<ClaimConfig> config;
  std::optional<Allocation> allocation;
  std::vector<ClaimConsumer> reserved_for;
  std::vector<DeviceStatus> devices;
  std::string Key() const { return ns + "/" + name; }
};

struct DeviceTaintRule {
  std::string name, uid, resource_version;
  // Absent: selects no device.
  struct Selector {
    std::optional<std::string> driver, pool, device;
  };
  std::optional<Selector> selector;
  DeviceTaint taint;
};

// The spec as text: equal for claims that ask for the same.
std::string SpecText(const ResourceClaim& claim);

// True if the rule's selector selects the device.
bool Selects(const DeviceTaintRule& rule, const Name& driver, const Name& pool, const Name& device);

// Unknown fields are ignored, null means absent; a known field of the wrong type, an object without
// a name, a slice without driver or pool, and a device without a name are errors. Values that only
// API server validation rejects are accepted, because a newer server may store them; the allocator
// decides about them. Error: kInvalid with the field path.
Status ReadResourceSlice(JsonSource json, ResourceSlice& to);
Status ReadDeviceClass(JsonSource json, DeviceClass& to);
Status ReadResourceClaim(JsonSource json, ResourceClaim& to);
// Serves resource.k8s.io/v1, v1beta2 and v1alpha3, which agree in the fields read here.
Status ReadDeviceTaintRule(JsonSource json, DeviceTaintRule& to);
// spec.spec of a ResourceClaimTemplate becomes the claim's spec; metadata as the template's.
Status ReadResourceClaimTemplate(JsonSource json, ResourceClaim& to);

}  // namespace nos::dra
