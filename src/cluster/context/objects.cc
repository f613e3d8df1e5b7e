#include "cluster/context.h"

#include <fmt/core.h>

#include <utility>

#include "cluster/fields.h"
#include "cluster/read_parts.h"

namespace nos::cluster {
namespace {

// Reads an object with metadata; `read` reads its other members from the root.
template <typename T, typename Function>
Status ReadObject(JsonSource json, T& to, Function read) {
  to = T();
  NOS_RETURN_IF_ERROR(
      ReadFields(json, [&](Field& root) { read(root, At("metadata", to.meta, ReadMeta)); }));
  return to.meta.name.empty() ? Invalid("metadata.name: is missing") : Status::Ok();
}

// Member `key`, an object with members of its own.
template <typename... Readers>
auto Within(std::string_view key, Member<Readers>... members) {
  return At(key, [=](Field& field) { field.Members(members...); });
}

auto Storage(std::string_view key, Quantity& to) {
  return At(key, [&to](Field& field) { field.Members(At("storage", to)); });
}

void ReadText(Field& from, std::string& to) { from.Read(to); }

void ReadQuantity(Field& from, Quantity& to) { from.Read(to); }

void ReadAllowedTopology(Field& from, std::vector<SelectorRequirement>& to) {
  from.Members(At("matchLabelExpressions", to, [](Field& label, SelectorRequirement& requirement) {
    requirement.op = "In";
    label.Members(At("key", requirement.key), At("values", requirement.values));
  }));
}

void ReadDriver(Field& from, CsiNode::Driver& to) {
  from.Members(At("name", to.name), At("nodeID", to.node_id), At("topologyKeys", to.topology_keys),
               Within("allocatable", At("count", to.count)));
}

void ReadGroup(Field& from, Workload::Group& to) {
  from.Members(At("name", to.name), Within("policy", Within("gang", At("minCount", to.min_count))));
}

}  // namespace

Status ReadNamespace(JsonSource json, Namespace& to) {
  return ReadObject(json, to, [](Field& root, const auto& meta) { root.Members(meta); });
}

Status ReadClaim(JsonSource json, PersistentVolumeClaim& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(
        meta,
        Within("spec", At("accessModes", to.access_modes),
               At("storageClassName", to.storage_class, ReadText), At("volumeName", to.volume_name),
               At("volumeMode", to.volume_mode), At("selector", to.selector, ReadSelector),
               At("volumeAttributesClassName", to.attributes_class, ReadText),
               Within("resources", Storage("requests", to.storage))),
        Within("status", At("phase", to.phase)));
  });
}

Status ReadVolume(JsonSource json, PersistentVolume& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(
        meta,
        Within("spec", At("accessModes", to.access_modes), At("storageClassName", to.storage_class),
               At("volumeMode", to.volume_mode), Storage("capacity", to.storage),
               Within("claimRef", At("namespace", to.claim_ns), At("name", to.claim_name),
                      At("uid", to.claim_uid)),
               Within("nodeAffinity", At("required", to.node_terms, ReadTerms)),
               Within("csi", At("driver", to.csi_driver), At("volumeHandle", to.csi_handle)),
               At("volumeAttributesClassName", to.attributes_class)),
        Within("status", At("phase", to.phase)));
  });
}

Status ReadStorageClass(JsonSource json, StorageClass& to) {
  std::string mode;
  NOS_RETURN_IF_ERROR(ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, At("provisioner", to.provisioner), At("volumeBindingMode", mode),
                 At("allowedTopologies", to.allowed_topologies, ReadAllowedTopology));
  }));
  to.waits_for_consumer = mode == "WaitForFirstConsumer";
  return Status::Ok();
}

Status ReadCsiNode(JsonSource json, CsiNode& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, Within("spec", At("drivers", to.drivers, ReadDriver)));
  });
}

Status ReadCsiDriver(JsonSource json, CsiDriver& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, Within("spec", At("storageCapacity", to.tracks_capacity)));
  });
}

Status ReadCsiStorageCapacity(JsonSource json, CsiStorageCapacity& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, At("storageClassName", to.storage_class),
                 At("nodeTopology", to.node_topology, ReadSelector),
                 At("capacity", to.capacity, ReadQuantity),
                 At("maximumVolumeSize", to.maximum_volume_size, ReadQuantity));
  });
}

Status ReadVolumeAttachment(JsonSource json, VolumeAttachment& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, Within("spec", At("attacher", to.attacher), At("nodeName", to.node),
                              Within("source", At("persistentVolumeName", to.volume))));
  });
}

Status ReadEqualitySelector(JsonSource json, PodOwner& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, Within("spec", At("selector", [&](Field& selector) {
                                if (selector.Present()) {
                                  selector.Read(to.selector.emplace().match_labels);
                                }
                              })));
  });
}

Status ReadLabelSelector(JsonSource json, PodOwner& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, Within("spec", At("selector", to.selector, ReadSelector)));
  });
}

Status ReadBudget(JsonSource json, PodDisruptionBudget& to) {
  StringMap disrupted;
  NOS_RETURN_IF_ERROR(ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, Within("spec", At("selector", to.selector, ReadSelector)),
                 Within("status", At("disruptionsAllowed", to.disruptions_allowed),
                        At("disruptedPods", disrupted)));
  }));
  for (const auto& [name, when] : disrupted) to.disrupted_pods.push_back(name);
  return Status::Ok();
}

Status ReadPodGroup(JsonSource json, PodGroup& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(
        meta, Within("spec", At("minMember", to.min_member), At("minResources", to.min_resources),
                     At("scheduleTimeoutSeconds", to.schedule_timeout_seconds)));
  });
}

Status ReadSchedulingGroup(JsonSource json, SchedulingGroup& to) {
  const auto read_claim = [](Field& entry, PodClaim& claim) {
    entry.Members(At("name", claim.name), At("resourceClaimName", claim.claim),
                  At("resourceClaimTemplateName", claim.template_name));
  };
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(
        meta,
        Within("spec", Within("schedulingPolicy", Within("gang", At("minCount", to.min_count))),
               At("resourceClaims", to.claims, read_claim)));
  });
}

Status ReadWorkload(JsonSource json, Workload& to) {
  return ReadObject(json, to, [&](Field& root, const auto& meta) {
    root.Members(meta, Within("spec", At("podGroups", to.groups, ReadGroup)));
  });
}

Result<bool> AddContext(std::string_view api_version, std::string_view kind, JsonSource json,
                        ClusterContext& to) {
  Result<bool> added = false;
  ForEachContextKind([&]<typename T>(const ContextKind& known, Status (*read)(JsonSource, T&),
                                     Table<T> ClusterContext::* table) {
    const std::string version = known.group.empty()
                                    ? std::string(known.version)
                                    : fmt::format("{}/{}", known.group, known.version);
    if (known.kind != kind || version != api_version) return;
    T object;
    if (const Status status = read(json, object); !status.ok()) {
      added = status;
      return;
    }
    if (known.namespaced && object.meta.ns.empty()) object.meta.ns = "default";
    const std::string key =
        known.namespaced ? object.meta.ns + "/" + object.meta.name : object.meta.name;
    if ((to.*table).Find(key) != nullptr) {
      added = Invalid("is given twice; give every object once");
      return;
    }
    (to.*table).Set(key, std::make_shared<const T>(std::move(object)));
    added = true;
  });
  return added;
}

}  // namespace nos::cluster
