#include <algorithm>

#include "cluster/read_parts.h"
#include "dra/objects/read_parts.h"

namespace nos::dra {
namespace {

using cluster::At;
using cluster::Field;

// The members of an attribute, of which exactly one is set.
class AttributeReader {
 public:
  AttributeReader(Field& from, Attribute& to) : from_(from), to_(to) {}

  void Read() {
    using Type = Attribute::Type;
    from_.Members(At("int", [&](Field& f) { One(f, Type::kInt); }),
                  At("bool", [&](Field& f) { One(f, Type::kBool); }),
                  At("string", [&](Field& f) { One(f, Type::kString); }),
                  At("version", [&](Field& f) { One(f, Type::kVersion); }),
                  At("ints", [&](Field& f) { List(f, Type::kInt); }),
                  At("bools", [&](Field& f) { List(f, Type::kBool); }),
                  At("strings", [&](Field& f) { List(f, Type::kString); }),
                  At("versions", [&](Field& f) { List(f, Type::kVersion); }));
  }

 private:
  static void Scalar(Field& field, Attribute::Type type, Attribute& to) {
    to.type = type;
    if (type == Attribute::Type::kInt) return field.Read(to.number);
    if (type != Attribute::Type::kBool) return ReadName(field, to.text);
    bool value = false;
    field.Read(value);
    to.number = value ? 1 : 0;
  }

  bool Set(Field& field) {
    if (!field.Present()) return false;
    if (to_.type != Attribute::Type::kUnknown) field.Fail("is a second value of one attribute");
    return to_.type == Attribute::Type::kUnknown;
  }

  void One(Field& field, Attribute::Type type) {
    if (Set(field)) Scalar(field, type, to_);
  }

  void List(Field& field, Attribute::Type type) {
    if (!Set(field)) return;
    std::vector<Attribute> elements;
    field.Each([&](Field& element) { Scalar(element, type, elements.emplace_back()); });
    if (elements.empty()) return;
    to_.type = type;
    to_.list = true;
    to_.elements = std::move(elements);
  }

  Field& from_;
  Attribute& to_;
};

template <typename T, typename Read>
std::vector<std::pair<Name, T>> ReadMap(Field& from, Read read) {
  std::vector<std::pair<Name, T>> map;
  from.Entries([&](std::string_view key, Field& value) {
    read(value, map.emplace_back(Name(key), T()).second);
  });
  std::sort(map.begin(), map.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return map;
}

void ReadAttribute(Field& from, Attribute& to) { AttributeReader(from, to).Read(); }

void ReadRange(Field& from, RequestPolicy::Range& to) {
  from.Members(At("min", [&](Field& f) { ReadOptional(f, to.min); }),
               At("max", [&](Field& f) { ReadOptional(f, to.max); }),
               At("step", [&](Field& f) { ReadOptional(f, to.step); }));
}

void ReadPolicy(Field& from, RequestPolicy& to) {
  from.Members(At("default", [&](Field& f) { ReadOptional(f, to.default_amount); }),
               At("validValues", to.valid_values, [](Field& f, Quantity& value) { f.Read(value); }),
               At("validRange", to.valid_range, ReadRange));
}

void ReadCapacity(Field& from, Capacity& to) {
  from.Members(At("value", to.value), At("requestPolicy", to.policy, ReadPolicy));
}

void ReadConsumption(Field& from, Consumption& to) {
  from.Members(At("counterSet", to.counter_set, ReadName), AtCounters("counters", to.counters),
               At("compatibilityGroups", to.groups, ReadName));
}

void ReadCounterSet(Field& from, CounterSet& to) {
  from.Members(At("name", to.name, ReadName), AtCounters("counters", to.counters));
}

void ReadDevice(Field& from, Device& to) {
  NodeSelection nodes;
  from.Members(
      At("name", to.name, ReadName),
      At("attributes",
         [&](Field& f) {
           to.attributes = Interned<Attributes, AttributesHash>(
               Attributes(ReadMap<Attribute>(f, ReadAttribute)));
         }),
      At("capacity",
         [&](Field& f) {
           to.capacity = Interned<Capacities, CapacitiesHash>(ReadMap<Capacity>(f, ReadCapacity));
         }),
      At("consumesCounters",
         [&](Field& f) {
           Consumptions consumes;
           f.Read(consumes, ReadConsumption);
           to.consumes = Interned<Consumptions, ConsumptionsHash>(std::move(consumes));
         }),
      At("taints", to.taints, ReadTaint), At("nodeName", nodes.node_name),
      At("nodeSelector", nodes.selector, cluster::ReadTerms), At("allNodes", nodes.all_nodes),
      At("bindsToNode", to.binds_to_node), At("bindingConditions", to.binding_conditions),
      At("bindingFailureConditions", to.binding_failure_conditions),
      At("allowMultipleAllocations", to.allow_multiple));
  if (to.name.empty()) from.Fail("has no name");
  if (!nodes.empty()) to.nodes = std::make_shared<const NodeSelection>(std::move(nodes));
}

void ReadSliceSpec(Field& from, ResourceSlice& to) {
  from.Members(
      At("driver", to.driver, ReadName),
      At("pool",
         [&](Field& pool) {
           pool.Members(At("name", to.pool, ReadName), At("generation", to.generation),
                        At("resourceSliceCount", to.slice_count));
         }),
      At("nodeName", to.nodes.node_name), At("nodeSelector", to.nodes.selector, cluster::ReadTerms),
      At("allNodes", to.nodes.all_nodes),
      At("perDeviceNodeSelection", [&](Field& f) { ReadOptional(f, to.nodes_per_device); }),
      At("devices", to.devices, ReadDevice),
      At("sharedCounters", to.shared_counters, ReadCounterSet),
      At("partitionTypeAttribute", to.partition_type_attribute),
      At("skipNodeOperations", to.skip_node_operations));
}

template <typename Object>
void ReadIdentity(Field& from, Object& to) {
  from.Members(At("name", to.name), At("uid", to.uid), At("resourceVersion", to.resource_version));
}

Status MustHave(bool present, std::string_view what) {
  return present ? Status::Ok() : Invalid(std::string(what) + ": is missing");
}

}  // namespace

Status ReadResourceSlice(JsonSource json, ResourceSlice& to) {
  to = ResourceSlice();
  NOS_RETURN_IF_ERROR(cluster::ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to, ReadIdentity<ResourceSlice>), At("spec", to, ReadSliceSpec));
  }));
  to.devices.shrink_to_fit();
  NOS_RETURN_IF_ERROR(MustHave(!to.name.empty(), "metadata.name"));
  NOS_RETURN_IF_ERROR(MustHave(!to.driver.empty(), "spec.driver"));
  return MustHave(!to.pool.empty(), "spec.pool.name");
}

Status ReadDeviceClass(JsonSource json, DeviceClass& to) {
  to = DeviceClass();
  const auto read_config = [](Field& entry, std::optional<OpaqueConfig>& config) {
    entry.Members(At("opaque", [&](Field& opaque) { ReadOpaque(opaque, config); }));
  };
  NOS_RETURN_IF_ERROR(cluster::ReadFields(json, [&](Field& root) {
    root.Members(At("metadata",
                    [&](Field& meta) {
                      meta.Members(At("name", to.name), At("uid", to.uid),
                                   At("resourceVersion", to.resource_version),
                                   At("creationTimestamp", to.created));
                    }),
                 At("spec", [&](Field& spec) {
                   spec.Members(At("selectors", to.selectors, ReadSelector),
                                At("config", to.config, read_config),
                                At("extendedResourceName", to.extended_resource_name));
                 }));
  }));
  return MustHave(!to.name.empty(), "metadata.name");
}

Status ReadDeviceTaintRule(JsonSource json, DeviceTaintRule& to) {
  to = DeviceTaintRule();
  // Selectors of Kubernetes 1.34 (v1alpha3) that later versions do not have.
  bool unknown = false;
  const auto note = [&](Field& f) { unknown = unknown || f.Present(); };
  const auto read_selector = [&](Field& from, DeviceTaintRule::Selector& selector) {
    from.Members(At("deviceClassName", note), At("selectors", note),
                 At("driver", [&](Field& f) { ReadOptional(f, selector.driver); }),
                 At("pool", [&](Field& f) { ReadOptional(f, selector.pool); }),
                 At("device", [&](Field& f) { ReadOptional(f, selector.device); }));
  };
  NOS_RETURN_IF_ERROR(cluster::ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to, ReadIdentity<DeviceTaintRule>), At("spec", [&](Field& spec) {
                   spec.Members(At("deviceSelector", to.selector, read_selector),
                                At("taint", to.taint, ReadTaint));
                 }));
  }));
  if (unknown) to.selector.reset();  // it selects no device
  return MustHave(!to.name.empty(), "metadata.name");
}

}  // namespace nos::dra
