#include "cluster/read_parts.h"
#include "dra/objects/read_parts.h"

namespace nos::dra {
namespace {

using cluster::At;
using cluster::Field;

void ReadExactRequest(Field& from, ExactRequest& to) {
  const auto read_derived = [](Field& entry, DerivedAttribute& derived) {
    entry.Members(At("name", derived.name), At("expression", derived.expression));
  };
  from.Members(At("name", to.name), At("deviceClassName", to.device_class),
               At("selectors", to.selectors, ReadSelector), At("allocationMode", to.mode),
               At("count", to.count),
               At("adminAccess", [&](Field& f) { ReadOptional(f, to.admin_access); }),
               At("tolerations", to.tolerations, ReadToleration),
               At("capacity",
                  [&](Field& f) {
                    if (f.Present()) f.Members(AtAmounts("requests", to.capacity.emplace()));
                  }),
               At("derivedAttributes", to.derived, read_derived));
}

void ReadRequest(Field& from, DeviceRequest& to) {
  from.Members(At("name", to.name), At("exactly", to.exactly, ReadExactRequest),
               At("firstAvailable", to.first_available, ReadExactRequest));
}

void ReadConstraint(Field& from, DeviceConstraint& to) {
  from.Members(At("requests", to.requests),
               At("matchAttribute", [&](Field& f) { ReadOptional(f, to.match_attribute); }),
               At("distinctAttribute", [&](Field& f) { ReadOptional(f, to.distinct_attribute); }));
}

void ReadConfig(Field& from, ClaimConfig& to) {
  from.Members(At("requests", to.requests),
               At("opaque", [&](Field& opaque) { ReadOpaque(opaque, to.opaque); }));
}

void ReadMeta(Field& from, ResourceClaim& to) {
  const auto read_owner = [](Field& entry, cluster::OwnerReference& owner) {
    entry.Members(At("apiVersion", owner.api_version), At("kind", owner.kind),
                  At("name", owner.name), At("uid", owner.uid), At("controller", owner.controller));
  };
  std::vector<cluster::OwnerReference> owners;
  from.Members(At("name", to.name), At("namespace", to.ns), At("uid", to.uid),
               At("resourceVersion", to.resource_version), At("annotations", to.annotations),
               At("finalizers", to.finalizers), At("deletionTimestamp", to.deleted),
               At("ownerReferences", owners, read_owner));
  for (const cluster::OwnerReference& owner : owners) {
    if (owner.controller) to.controller = owner;
  }
}

void ReadConsumer(Field& from, ClaimConsumer& to) {
  from.Members(At("apiGroup", to.api_group), At("resource", to.resource), At("name", to.name),
               At("uid", to.uid));
}

void ReadDeviceStatus(Field& from, DeviceStatus& to) {
  const auto read_condition = [](Field& entry, DeviceStatus::Condition& condition) {
    entry.Members(At("type", condition.type), At("status", condition.status),
                  At("reason", condition.reason), At("message", condition.message));
  };
  from.Members(At("driver", to.driver, ReadName), At("pool", to.pool, ReadName),
               At("device", to.device, ReadName), At("shareID", to.share_id),
               At("conditions", to.conditions, read_condition));
}

void ReadStatus(Field& from, ResourceClaim& to) {
  from.Members(At("allocation", to.allocation, ReadAllocation),
               At("reservedFor", to.reserved_for, ReadConsumer),
               At("devices", to.devices, ReadDeviceStatus));
}

Status Named(const ResourceClaim& claim) {
  return claim.name.empty() ? Invalid("metadata.name: is missing") : Status::Ok();
}

}  // namespace

void ReadClaimSpec(Field& from, ResourceClaim& to) {
  from.Members(At("devices", [&](Field& devices) {
    devices.Members(At("requests", to.requests, ReadRequest),
                    At("constraints", to.constraints, ReadConstraint),
                    At("config", to.config, ReadConfig));
  }));
}

Status ReadResourceClaim(JsonSource json, ResourceClaim& to) {
  to = ResourceClaim();
  NOS_RETURN_IF_ERROR(cluster::ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to, ReadMeta), At("spec", to, ReadClaimSpec),
                 At("status", to, ReadStatus));
  }));
  to.spec = Name(SpecText(to));
  return Named(to);
}

Status ReadResourceClaimTemplate(JsonSource json, ResourceClaim& to) {
  to = ResourceClaim();
  NOS_RETURN_IF_ERROR(cluster::ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to, ReadMeta),
                 At("spec", [&](Field& spec) { spec.Members(At("spec", to, ReadClaimSpec)); }));
  }));
  to.spec = Name(SpecText(to));
  return Named(to);
}

}  // namespace nos::dra
