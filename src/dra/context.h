// The objects of resource.k8s.io in the cluster context.
#pragma once

#include <string_view>

#include "cluster/context.h"
#include "dra/objects.h"

namespace nos::dra {

inline constexpr std::string_view kSliceKind = "ResourceSlice", kClassKind = "DeviceClass",
                                  kClaimKind = "ResourceClaim", kTaintRuleKind = "DeviceTaintRule";

// True for the kinds of the tables below.
inline bool IsDeviceKind(std::string_view kind) {
  return kind == kSliceKind || kind == kClassKind || kind == kClaimKind || kind == kTaintRuleKind;
}

// Calls visit(ContextKind, reader, member of ClusterContext) for each table, as
// cluster::ForEachContextKind does for the others. Servers before Kubernetes 1.34 do not serve v1
// of the API, and those before 1.37 serve taint rules in other versions only, by feature gate.
template <typename Visit>
void ForEachDeviceKind(Visit visit) {
  using S = cluster::ClusterContext;
  const std::string_view group = "resource.k8s.io";
  visit(cluster::ContextKind{group, "v1", "resourceslices", kSliceKind, false}, ReadResourceSlice,
        &S::device_slices);
  visit(cluster::ContextKind{group, "v1", "deviceclasses", kClassKind, false}, ReadDeviceClass,
        &S::device_classes);
  visit(cluster::ContextKind{group, "v1", "resourceclaims", kClaimKind, true}, ReadResourceClaim,
        &S::device_claims);
  for (const std::string_view version : {"v1alpha3", "v1beta2", "v1"}) {
    visit(cluster::ContextKind{group, version, "devicetaintrules", kTaintRuleKind, false},
          ReadDeviceTaintRule, &S::device_taint_rules);
  }
}

// Adds an object of these kinds to its table, as cluster::AddContext does for the others. False: it
// is of another kind. Error: kInvalid, the fault.
Result<bool> AddDevices(std::string_view api_version, std::string_view kind, const Json& object,
                        cluster::ClusterContext& to);

}  // namespace nos::dra
