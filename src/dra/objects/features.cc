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
  features.counters_beside_devices = minor < 35;
  return features;
}

}  // namespace nos::dra
