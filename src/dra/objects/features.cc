#include "dra/features.h"

namespace nos::dra {

Features Features::Of(int minor) {
  Features features;
  if (minor < 37) features.fractional_capacity = false;
  if (minor < 36) {
    features.partitionable_devices = false;
    features.consumable_capacity = false;
    features.binding_conditions = false;
    features.device_taints = false;
  }
  return features;
}

Features Features::All() {
  Features features;
  features.list_attributes = true;
  features.derived_attributes = true;
  features.compatibility_groups = true;
  features.optional_node_operations = true;
  return features;
}

}  // namespace nos::dra
