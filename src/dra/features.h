// The parts of Dynamic Resource Allocation that a cluster has switched on. Each corresponds to one
// feature gate of Kubernetes.
#pragma once

namespace nos::dra {

struct Features {
  bool admin_access = true;               // DRAAdminAccess
  bool prioritized_list = true;           // DRAPrioritizedList: firstAvailable
  bool partitionable_devices = true;      // DRAPartitionableDevices: counters
  bool consumable_capacity = true;        // DRAConsumableCapacity: several claims share a device
  bool fractional_capacity = true;        // DRAFractionalCapacityRange: steps of thousandths
  bool binding_conditions = true;         // DRADeviceBindingConditions
  bool device_taints = true;              // DRADeviceTaints, DRADeviceTaintRules
  bool list_attributes = false;           // DRAListTypeAttributes
  bool derived_attributes = false;        // DRADerivedAttributes
  bool compatibility_groups = false;      // DRADeviceCompatibilityGroups
  bool optional_node_operations = false;  // DRAOptionalNodeOperations

  // The defaults of Kubernetes 1.`minor`, 34 or newer.
  static Features Of(int minor);
  // All features on. The API server drops the fields of a gate that is off, so stored objects show
  // which features a cluster has.
  static Features All();
  friend bool operator==(const Features&, const Features&) = default;
};

}  // namespace nos::dra
