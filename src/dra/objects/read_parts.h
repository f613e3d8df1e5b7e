// Readers for parts that several kinds share.
#pragma once

#include "cluster/fields.h"
#include "dra/objects.h"

namespace nos::dra {

void ReadName(cluster::Field& from, Name& to);
void ReadAmounts(cluster::Field& from, Amounts& to);
// A map whose values are objects with a member "value".
void ReadCounters(cluster::Field& from, Amounts& to);
// Members of an object that are such maps.
inline auto AtAmounts(std::string_view key, Amounts& to) {
  return cluster::At(key, [&to](cluster::Field& field) { ReadAmounts(field, to); });
}
inline auto AtCounters(std::string_view key, Amounts& to) {
  return cluster::At(key, [&to](cluster::Field& field) { ReadCounters(field, to); });
}
void ReadOptional(cluster::Field& from, std::optional<Quantity>& to);
void ReadOptional(cluster::Field& from, std::optional<bool>& to);
void ReadOptional(cluster::Field& from, std::optional<int64_t>& to);
void ReadOptional(cluster::Field& from, std::optional<std::string>& to);
void ReadTaint(cluster::Field& from, DeviceTaint& to);
void ReadToleration(cluster::Field& from, DeviceToleration& to);
// The CEL expression of a selector.
void ReadSelector(cluster::Field& from, std::optional<std::string>& to);
void ReadOpaque(cluster::Field& from, std::optional<OpaqueConfig>& to);
void ReadAllocation(cluster::Field& from, Allocation& to);
void ReadClaimSpec(cluster::Field& from, ResourceClaim& to);

}  // namespace nos::dra
