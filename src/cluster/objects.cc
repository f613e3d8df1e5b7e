#include "cluster/objects.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cluster/fields.h"
#include "cluster/new_pod.h"
#include "cluster/read_parts.h"

namespace nos::cluster {
namespace {

// Reads ResourceRequirements into an owner with `requests` and `limits`.
template <typename Owner>
auto Resources(Owner& to) {
  return At("resources", [&to](Field& from) {
    from.Members(At("requests", to.requests), At("limits", to.limits));
  });
}

auto User(int64_t& to) {
  return At("securityContext", [&to](Field& from) { from.Members(At("runAsUser", to)); });
}

void ReadHostPort(Field& from, HostPort& to) {
  from.Members(At("hostPort", to.port), At("hostIP", to.ip), At("protocol", to.protocol));
}

void ReadContainer(Field& from, Container& to) {
  std::string restart_policy;
  from.Members(At("name", to.name), Resources(to), At("restartPolicy", restart_policy),
               At("image", to.image), At("ports", to.host_ports, ReadHostPort), User(to.user));
  std::erase_if(to.host_ports, [](const HostPort& port) { return port.port <= 0; });
  to.restart_always = restart_policy == "Always";
}

// A disk of a kind that one node at a time may write, identified by its member `key`.
auto ReadDisk(Volume& to, Volume::Kind kind, std::string_view key) {
  return [&to, kind, key](Field& from) {
    if (!from.Present()) return;
    to.kind = kind;
    from.Members(At(key, to.source), At("readOnly", to.read_only));
  };
}

void ReadRbd(Field& from, Volume& to) {
  if (!from.Present()) return;
  std::string pool = "rbd", image;
  from.Members(At("monitors", to.monitors), At("pool", pool), At("image", image),
               At("readOnly", to.read_only));
  to.kind = Volume::Kind::kRbd;
  to.source = pool + "/" + image;
}

void ReadEmptyDir(Field& from, Volume& to) {
  if (!from.Present()) return;
  std::string medium;
  from.Members(At("medium", medium));
  to.local = to.local || medium != "Memory";
}

// Source of the fields that identify a disk: k8s.io/kubernetes
// pkg/scheduler/framework/plugins/volumerestrictions.
void ReadVolume(Field& from, Volume& to) {
  using enum Volume::Kind;
  from.Members(At("name", to.name),
               At("persistentVolumeClaim",
                  [&](Field& claim) {
                    if (!claim.Present()) return;
                    to.kind = kClaim;
                    claim.Members(At("claimName", to.source), At("readOnly", to.read_only));
                  }),
               At("ephemeral",
                  [&](Field& field) {
                    if (field.Present()) to.kind = kEphemeral;
                  }),
               At("gcePersistentDisk", ReadDisk(to, kGcePersistentDisk, "pdName")),
               At("awsElasticBlockStore", ReadDisk(to, kAwsElasticBlock, "volumeID")),
               At("iscsi", ReadDisk(to, kIscsi, "iqn")),
               At("rbd", [&](Field& field) { ReadRbd(field, to); }),
               At("hostPath", [&](Field& field) { to.local = to.local || field.Present(); }),
               At("emptyDir", [&](Field& field) { ReadEmptyDir(field, to); }));
}

void ReadWorkloadRef(Field& from, WorkloadRef& to) {
  from.Members(At("name", to.name), At("podGroup", to.pod_group),
               At("podGroupReplicaKey", to.replica_key));
}

void ReadGate(Field& from, std::string& to) { from.Members(At("name", to)); }

void ReadPodClaim(Field& from, PodClaim& to) {
  from.Members(At("name", to.name), At("resourceClaimName", to.claim),
               At("resourceClaimTemplateName", to.template_name));
}

}  // namespace

void ReadPodSpec(Field& from, Pod& to) {
  from.Members(At("nodeName", to.node_name), At("schedulerName", to.scheduler_name),
               At("priorityClassName", to.priority_class), At("priority", to.priority),
               At("nodeSelector", to.node_selector),
               At("affinity",
                  [&](Field& affinity) {
                    affinity.Members(At("nodeAffinity", to.node_affinity, ReadNodeAffinity),
                                     At("podAffinity", to.pod_affinity, ReadPodAffinity),
                                     At("podAntiAffinity", to.pod_anti_affinity, ReadPodAffinity));
                  }),
               At("tolerations", to.tolerations, ReadToleration),
               At("containers", to.containers, ReadContainer),
               At("initContainers", to.init_containers, ReadContainer), At("overhead", to.overhead),
               Resources(to), At("schedulingGates", to.scheduling_gates, ReadGate),
               At("topologySpreadConstraints", to.spread, ReadSpread),
               At("volumes", to.volumes, ReadVolume), At("preemptionPolicy", to.preemption_policy),
               At("workloadRef", to.workload, ReadWorkloadRef), At("hostIPC", to.host_ipc),
               At("terminationGracePeriodSeconds", to.grace_seconds), User(to.user),
               At("schedulingGroup",
                  [&](Field& group) { group.Members(At("podGroupName", to.scheduling_group)); }),
               At("resourceClaims", to.claims, ReadPodClaim));
}

namespace {

// A ContainerStatus: the resources allocated by the kubelet (`reported` is false if `resources` is
// missing) and the exit.
struct ContainerStatus {
  std::string name;
  bool reported = false;
  ResourceList most;
  int32_t exit_code = 0;
  std::optional<Time> ended{};
};

void RaiseTo(ResourceList& total, const ResourceList& least) {
  for (const auto& [name, quantity] : least) total[name] = std::max(total[name], quantity);
}

void ReadContainerStatus(Field& from, ContainerStatus& to) {
  ResourceList allocated, set;
  from.Members(At("name", to.name), At("allocatedResources", allocated),
               At("resources",
                  [&](Field& resources) {
                    to.reported = resources.Present();
                    if (to.reported) resources.Members(At("requests", set));
                  }),
               At("state", [&](Field& state) {
                 state.Members(At("terminated", [&](Field& end) {
                   end.Members(At("exitCode", to.exit_code), At("finishedAt", to.ended));
                 }));
               }));
  to.most = std::move(set);
  RaiseTo(to.most, allocated);
}

// Source: k8s.io/component-helpers resource.PodRequests with UseStatusResources.
void SetResizing(const std::vector<ContainerStatus>& statuses, bool infeasible, Pod& pod) {
  const auto set = [&](Container& container) {
    const auto found = std::ranges::find(statuses, container.name, &ContainerStatus::name);
    if (found == statuses.end() || !found->reported) return;
    ResourceList counts = found->most;
    if (!infeasible) RaiseTo(counts, container.requests);
    if (counts != container.requests) container.resizing = std::move(counts);
  };
  std::ranges::for_each(pod.containers, set);
  for (Container& container : pod.init_containers) {
    if (container.restart_always) set(container);
  }
}

// An entry of status.resourceClaimStatuses.
struct ClaimStatus {
  std::string name;
  std::optional<std::string> claim;  // absent: the pod needs none
};

void ReadClaimStatus(Field& from, ClaimStatus& to) {
  from.Members(At("name", to.name), At("resourceClaimName", [&](Field& claim) {
                 if (claim.Present()) claim.Read(to.claim.emplace());
               }));
}

void SetClaims(const std::vector<ClaimStatus>& statuses, Pod& pod) {
  for (PodClaim& claim : pod.claims) {
    const auto found = std::ranges::find(statuses, claim.name, &ClaimStatus::name);
    if (claim.template_name.empty() || found == statuses.end()) continue;
    claim.claim = found->claim.value_or("");
    claim.unneeded = !found->claim;
  }
}

void ReadPodStatus(Field& from, Pod& to, std::vector<ContainerStatus>& statuses,
                   std::vector<ClaimStatus>& claims) {
  std::vector<ContainerStatus> of_init;
  from.Members(At("phase", to.phase), At("nominatedNodeName", to.nominated_node),
               At("reason", to.reason), At("message", to.message), At("startTime", to.started),
               At("conditions", to.conditions, ReadCondition),
               At("containerStatuses", statuses, ReadContainerStatus),
               At("initContainerStatuses", of_init, ReadContainerStatus),
               At("resourceClaimStatuses", claims, ReadClaimStatus),
               At("extendedResourceClaimStatus", [&](Field& status) {
                 status.Members(At("resourceClaimName", to.extended_claim));
               }));
  for (const ContainerStatus& status : statuses) to.ended = std::max(to.ended, status.ended);
  for (ContainerStatus& status : of_init) {
    if (status.exit_code != 0) to.ended = std::max(to.ended, status.ended);
    statuses.push_back(std::move(status));
  }
}

void ReadImages(Field& from, std::vector<NodeImage>& to) {
  from.Each([&](Field& image) {
    std::vector<std::string> names;
    int64_t bytes = 0;
    image.Members(At("names", names), At("sizeBytes", bytes));
    for (const std::string& name : names) to.push_back({ImageId(name), bytes});
  });
  std::sort(to.begin(), to.end(),
            [](const NodeImage& a, const NodeImage& b) { return a.name < b.name; });
}

void ReadNodeSpec(Field& from, Node& to) {
  from.Members(At("unschedulable", to.unschedulable), At("taints", to.taints, ReadTaint));
}

void ReadNodeStatus(Field& from, Node& to) {
  from.Members(At("capacity", to.capacity), At("allocatable", to.allocatable),
               At("conditions", to.conditions, ReadCondition),
               At("images", [&](Field& images) { ReadImages(images, to.images); }));
}

template <typename T, typename ReadStatus>
Status ReadParts(JsonSource json, T& to, void (*read_spec)(Field&, T&), ReadStatus read_status) {
  return ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to.meta, ReadMeta), At("spec", to, read_spec),
                 At("status", to, read_status));
  });
}

Status CheckName(const ObjectMeta& meta) {
  return meta.name.empty() ? Invalid("metadata.name: is missing") : Status::Ok();
}

}  // namespace

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto it = std::find_if(conditions.begin(), conditions.end(),
                               [&](const Condition& condition) { return condition.type == type; });
  return it == conditions.end() ? nullptr : &*it;
}

uint64_t ImageId(std::string_view name) { return std::hash<std::string_view>{}(name); }

Status ReadNewPod(JsonSource json, Pod& to) {
  to = Pod();
  to.meta.ns = "default";
  to.scheduler_name = "default-scheduler";
  to.phase = "Pending";
  std::vector<ContainerStatus> statuses;
  std::vector<ClaimStatus> claims;
  const Status read = ReadParts(json, to, ReadPodSpec, [&](Field& status, Pod& pod) {
    ReadPodStatus(status, pod, statuses, claims);
  });
  SetClaims(claims, to);  // the status may come before the spec
  const Condition* resize = to.FindCondition("PodResizePending");
  SetResizing(statuses, resize != nullptr && resize->reason == "Infeasible", to);
  return read;
}

Status ReadPod(JsonSource json, Pod& to) {
  NOS_RETURN_IF_ERROR(ReadNewPod(json, to));
  return CheckName(to.meta);
}

Status ReadNode(JsonSource json, Node& to) {
  to = Node();
  NOS_RETURN_IF_ERROR(ReadParts(json, to, ReadNodeSpec, ReadNodeStatus));
  return CheckName(to.meta);
}

Result<Pod> DecodePod(JsonSource json) {
  Pod pod;
  NOS_RETURN_IF_ERROR(ReadPod(json, pod));
  return pod;
}

Result<Node> DecodeNode(JsonSource json) {
  Node node;
  NOS_RETURN_IF_ERROR(ReadNode(json, node));
  return node;
}

}  // namespace nos::cluster
