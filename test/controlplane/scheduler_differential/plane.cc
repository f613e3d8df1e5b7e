#include "scheduler_differential/plane.h"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

#include "dra/context.h"
#include "kube/cache.h"

namespace nos::differential {
namespace {

using cluster::ClusterContext;
using kube::Resource;

const Json kNoGrace = {{"gracePeriodSeconds", 0}};

const Resource kClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};
const Resource kVolumes{"", "v1", "persistentvolumes", "PersistentVolume", false};

const Resource kDeviceClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true};

std::string ApiVersionOf(const Resource& resource) {
  return resource.group.empty() ? resource.version : resource.group + "/" + resource.version;
}

std::string_view VersionOf(const Json& object) {
  return FindString(object, "metadata", "resourceVersion");
}

std::string KeyOf(const Json& object) {
  return kube::KeyOf(FindString(object, "metadata", "namespace"),
                     FindString(object, "metadata", "name"));
}

template <typename T>
Status AddTo(cluster::Table<T>& table, Status (*read)(JsonSource, T&), const Json& object) {
  auto value = std::make_shared<T>();
  NOS_RETURN_IF_ERROR(read(JsonSource(object), *value));
  const std::string key = kube::KeyOf(value->meta.ns, value->meta.name);
  table.Set(key, std::move(value));
  return Status::Ok();
}

Status AddDevices(ClusterContext& context, const Json& object) {
  Status status = Status::Ok();
  dra::ForEachDeviceKind([&](const cluster::ContextKind& kind, auto read, auto table) {
    const std::string version = fmt::format("{}/{}", kind.group, kind.version);
    if (kind.kind != FindString(object, "kind") || version != FindString(object, "apiVersion")) {
      return;
    }
    using Value = std::remove_cvref_t<decltype(*(context.*table).Find(""))>;
    auto value = std::make_shared<Value>();
    status = read(JsonSource(object), *value);
    if (status.ok()) (context.*table).Set(KeyOf(object), std::move(value));
  });
  return status;
}

Status AddContext(ClusterContext& context, const Json& object) {
  const std::string_view kind = FindString(object, "kind");
  if (dra::IsDeviceKind(kind)) return AddDevices(context, object);
  using namespace cluster;
  if (kind == "Namespace") return AddTo(context.namespaces, ReadNamespace, object);
  if (kind == "StorageClass") return AddTo(context.storage_classes, ReadStorageClass, object);
  if (kind == "Service") return AddTo(context.services, ReadEqualitySelector, object);
  if (kind == "ReplicaSet") return AddTo(context.replica_sets, ReadLabelSelector, object);
  if (kind == "StatefulSet") return AddTo(context.stateful_sets, ReadLabelSelector, object);
  if (kind == "PodDisruptionBudget") return AddTo(context.budgets, ReadBudget, object);
  if (kind == "CSINode") return AddTo(context.csi_nodes, ReadCsiNode, object);
  if (kind == "PersistentVolumeClaim") return AddTo(context.claims, ReadClaim, object);
  if (kind == "PersistentVolume") return AddTo(context.volumes, ReadVolume, object);
  return Status::Ok();
}

kube::ApiRequest DeleteAll(const Resource& resource, std::string_view ns) {
  return {"DELETE", kube::PathOf(resource, ns), {}, "application/json", "", kNoGrace};
}

}  // namespace

Result<Picture> PictureOf(const JsonArray& objects) {
  Picture picture;
  picture.objects = objects;
  for (const Json& object : objects) {
    const std::string_view kind = FindString(object, "kind");
    if (kind == "Node") {
      NOS_ASSIGN(cluster::Node node, cluster::DecodeNode(JsonSource(object)));
      picture.nodes.push_back(std::make_shared<const cluster::Node>(std::move(node)));
    } else if (kind == "Pod") {
      NOS_ASSIGN(cluster::Pod pod, cluster::DecodePod(JsonSource(object)));
      picture.pods.push_back(std::make_shared<const cluster::Pod>(std::move(pod)));
    } else {
      NOS_RETURN_IF_ERROR(AddContext(picture.context, object));
    }
  }
  return picture;
}

namespace {

std::vector<KnownKind> KindsOf(const DeviceApi& devices) {
  std::vector<KnownKind> kinds{
      {kube::kNamespaces, true},
      {{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false}, true},
      {{"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false}, true},
      {{"storage.k8s.io", "v1", "storageclasses", "StorageClass", false}, true},
      {kube::kPods},
      {kube::kNodes},
      {{"", "v1", "services", "Service", true}},
      {{"apps", "v1", "replicasets", "ReplicaSet", true}},
      {{"apps", "v1", "statefulsets", "StatefulSet", true}},
      {{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true}},
      {{"storage.k8s.io", "v1", "csinodes", "CSINode", false}},
      {kClaims},
      {kVolumes}};
  if (!devices.any()) return kinds;
  const std::string group = kDeviceClaims.group;
  kinds.push_back({{group, "v1", "deviceclasses", "DeviceClass", false}});
  kinds.push_back({{group, "v1", "resourceslices", "ResourceSlice", false}});
  kinds.push_back({{group, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", true}});
  kinds.push_back({kDeviceClaims});
  if (const std::string version = devices.taint_rules(); !version.empty()) {
    kinds.push_back({{group, version, "devicetaintrules", "DeviceTaintRule", false}});
  }
  return kinds;
}

}  // namespace

Plane::Plane(kube::ConnectionConfig config, const DeviceApi& devices)
    : server_(config.server),
      transport_(std::make_unique<kube::HttpTransport>(
          std::move(config), kube::HttpOptions{.requests_per_second = 5000, .burst = 5000})),
      client_(*transport_),
      kinds_(KindsOf(devices)),
      pods_{kube::kPods},
      claims_{kClaims},
      volumes_{kVolumes},
      device_claims_{kDeviceClaims},
      watched_{&pods_, &claims_, &volumes_} {
  if (devices.any()) watched_.push_back(&device_claims_);
}

Result<std::unique_ptr<Plane>> Plane::Connect(const std::string& folder, const DeviceApi& devices) {
  NOS_ASSIGN(auto config, kube::LoadConnection(folder + "/kubeconfig", ""));
  std::unique_ptr<Plane> plane(new Plane(std::move(config), devices));
  for (Watched* watched : plane->watched_) {
    NOS_RETURN_IF_ERROR(plane->Follow(*watched));
  }
  return plane;
}

const Resource& Plane::ResourceOf(const Json& object) const {
  const std::string_view kind = FindString(object, "kind");
  const auto found = std::ranges::find_if(
      kinds_, [&](const KnownKind& known) { return known.resource.kind == kind; });
  return found->resource;
}

Status Plane::Follow(Watched& watched) {
  NOS_ASSIGN(const kube::ObjectList list, client_.List(watched.resource, "", {}));
  watched.objects.clear();
  for (const Json& item : list.items) watched.objects[KeyOf(item)] = item;
  kube::ListOptions from;
  from.resource_version = list.resource_version;
  NOS_ASSIGN(watched.stream, client_.Watch(watched.resource, "", from));
  watched.stream->OnReady([this] { bell_.Ring(); });
  return Status::Ok();
}

Status Plane::Take(Watched& watched) {
  while (auto event = watched.stream->Next()) {
    if (event->type == "BOOKMARK") continue;
    if (event->type == "ERROR") return Follow(watched);
    NOS_ASSIGN(Json object, TreeOf(event->json()));
    const std::string key = KeyOf(object);
    if (event->type == "DELETED") {
      watched.objects.erase(key);
    } else {
      if (&watched == &claims_) NOS_RETURN_IF_ERROR(Provision(object));
      if (&watched == &pods_ && on_pod_) on_pod_(key, object);
      watched.objects[key] = std::move(object);
    }
  }
  if (watched.stream->Ended()) return Follow(watched);
  watched.stream->OnReady([this] { bell_.Ring(); });
  return Status::Ok();
}

// Plays an external provisioner for a claim with a selected node.
Status Plane::Provision(const Json& claim) {
  const std::string_view storage_class = FindString(claim, "spec", "storageClassName");
  const bool ours = storage_class == "made" || storage_class == "zonal";
  const Json* annotations = Find(claim, "metadata", "annotations");
  if (!ours || annotations == nullptr || !FindString(claim, "spec", "volumeName").empty() ||
      FindString(*annotations, "volume.kubernetes.io/selected-node").empty()) {
    return Status::Ok();
  }
  const std::string uid(FindString(claim, "metadata", "uid"));
  if (!provisioned_.emplace(uid, true).second) return Status::Ok();
  const std::string name = "made-" + uid;
  const Json volume = {{"apiVersion", "v1"},
                       {"kind", "PersistentVolume"},
                       {"metadata", {{"name", name}}},
                       {"spec",
                        {{"capacity", *Find(claim, "spec", "resources", "requests")},
                         {"accessModes", *Find(claim, "spec", "accessModes")},
                         {"storageClassName", storage_class},
                         {"persistentVolumeReclaimPolicy", "Retain"},
                         {"csi", {{"driver", "csi.example.com"}, {"volumeHandle", name}}},
                         {"claimRef",
                          {{"apiVersion", "v1"},
                           {"kind", "PersistentVolumeClaim"},
                           {"namespace", FindString(claim, "metadata", "namespace")},
                           {"name", FindString(claim, "metadata", "name")},
                           {"uid", uid}}}}}};
  return client_.Create(kVolumes, "", volume).status();
}

const Json* Plane::Watched::Find(const std::string& key) const {
  const auto found = objects.find(key);
  return found == objects.end() ? nullptr : &found->second;
}

bool Plane::VolumesSettled() const {
  const bool volumes = std::ranges::all_of(volumes_.objects, [&](const auto& item) {
    const std::string_view phase = FindString(item.second, "status", "phase");
    const Json* claimed = Find(item.second, "spec", "claimRef");
    return claimed == nullptr ? phase == "Available" : phase == "Bound" || phase == "Released";
  });
  return volumes && std::ranges::all_of(claims_.objects, [](const auto& item) {
           const std::string_view phase = FindString(item.second, "status", "phase");
           return FindString(item.second, "spec", "volumeName").empty() || phase != "Pending";
         });
}

bool Plane::Shows(const Json& object) const {
  for (const Watched* watched : watched_) {
    if (watched->resource.kind != FindString(object, "kind")) continue;
    const Json* shown = watched->Find(KeyOf(object));
    return shown != nullptr && kube::NotNewer(VersionOf(object), VersionOf(*shown));
  }
  return true;
}

Status Plane::Await(const std::function<bool()>& done, const std::string& what, Duration patience) {
  const SystemClock clock;
  const Time deadline = clock.Now() + patience;
  while (true) {
    for (Watched* watched : watched_) NOS_RETURN_IF_ERROR(Take(*watched));
    if (done()) return Status::Ok();
    const Duration left = deadline - clock.Now();
    if (left <= Duration::zero()) return {Code::kDeadline, "waited in vain: " + what};
    bell_.Wait(left);
  }
}

// Replaces `created` by the stored objects.
Status Plane::WriteStatus(const std::vector<Json>& objects, std::vector<Json>& created) {
  for (const char* kind : {"Pod", "PodDisruptionBudget", "ResourceClaim"}) {
    std::vector<kube::NamedPatch> patches;
    std::vector<size_t> where;
    for (size_t i = 0; i < objects.size(); ++i) {
      const Json* status = Find(objects[i], "status");
      if (status == nullptr || FindString(objects[i], "kind") != kind) continue;
      where.push_back(i);
      patches.push_back({std::string(FindString(objects[i], "metadata", "namespace")),
                         std::string(FindString(objects[i], "metadata", "name")),
                         JsonObject{{"status", *status}}});
    }
    if (patches.empty()) continue;
    auto answers = client_.PatchAll(ResourceOf(objects[where.front()]), kube::PatchType::kMerge,
                                    patches, "status");
    for (size_t i = 0; i < answers.size(); ++i) {
      NOS_RETURN_IF_ERROR(answers[i].status());
      created[where[i]] = *std::move(answers[i]);
      created[where[i]].get_object()["kind"] = kind;
    }
  }
  return Status::Ok();
}

Result<std::vector<Json>> Plane::Create(const std::vector<Json>& objects) {
  std::vector<kube::ApiRequest> requests;
  for (const Json& object : objects) {
    requests.push_back(
        {"POST",
         kube::PathOf(ResourceOf(object), FindString(object, "metadata", "namespace")),
         {},
         "application/json",
         "",
         object});
  }
  std::vector<Json> created;
  for (auto& answer : transport_->DoAll(requests)) {
    NOS_RETURN_IF_ERROR(answer.status());
    if (const Status status = kube::StatusOf(*answer);
        !status.ok() && status.code() != Code::kAlreadyExists) {
      return Status{status.code(),
                    fmt::format("{}\nof {}", status.message(), WriteJson(objects[created.size()]))};
    }
    NOS_ASSIGN(Json object, TreeOf(answer->json()));
    object.get_object()["kind"] = FindString(objects[created.size()], "kind");
    created.push_back(std::move(object));
  }
  NOS_RETURN_IF_ERROR(WriteStatus(objects, created));
  const auto shown = [&] {
    return std::ranges::all_of(created, [this](const Json& object) { return Shows(object); });
  };
  NOS_RETURN_IF_ERROR(Await(shown, "what was created to be shown"));
  return created;
}

Result<Json> Plane::Create(const Json& object) {
  NOS_ASSIGN(std::vector<Json> created, Create(std::vector<Json>{object}));
  return std::move(created.front());
}

Status Plane::Patch(const Json& object, const Json& patch, std::string_view subresource) {
  NOS_ASSIGN(Json patched,
             client_.Patch(ResourceOf(object), FindString(object, "metadata", "namespace"),
                           FindString(object, "metadata", "name"), kube::PatchType::kMerge, patch,
                           subresource));
  patched.get_object()["kind"] = FindString(object, "kind");
  for (Json& lasting : lasting_) {
    const bool same =
        FindString(lasting, "metadata", "uid") == FindString(patched, "metadata", "uid");
    if (same) lasting = patched;
  }
  return Await([&] { return Shows(patched); }, "what was changed to be shown");
}

Status Plane::Delete(const Json& object) {
  const Status status =
      client_.Delete(ResourceOf(object), FindString(object, "metadata", "namespace"),
                     FindString(object, "metadata", "name"), kNoGrace);
  return status.code() == Code::kNotFound ? Status::Ok() : status;
}

Status Plane::Clear() {
  static const std::vector<std::string> namespaces{"red", "green", "blue"};
  const auto send = [this](const std::vector<kube::ApiRequest>& requests) {
    for (const auto& answer : transport_->DoAll(requests)) {
      NOS_RETURN_IF_ERROR(answer.status());
      NOS_RETURN_IF_ERROR(kube::StatusOf(*answer));
    }
    return Status::Ok();
  };
  std::vector<kube::ApiRequest> pods, others;
  for (const KnownKind& kind : kinds_) {
    if (kind.lasts) continue;
    auto& requests = kind.resource.kind == "Pod" ? pods : others;
    if (!kind.resource.namespaced) requests.push_back(DeleteAll(kind.resource, ""));
    for (const std::string& ns : namespaces) {
      if (kind.resource.namespaced) requests.push_back(DeleteAll(kind.resource, ns));
    }
  }
  NOS_RETURN_IF_ERROR(send(pods));
  NOS_RETURN_IF_ERROR(send(others));
  provisioned_.clear();
  const auto gone = [this] {
    return pods_.objects.empty() && volumes_.objects.empty() && device_claims_.objects.empty();
  };
  if (Await(gone, "the end of a cluster", std::chrono::seconds(1)).ok()) return Status::Ok();
  // The controller overlooks some claims of pods that leave.
  for (const auto& [key, claim] : device_claims_.objects) {
    (void)client_.Patch(kDeviceClaims, FindString(claim, "metadata", "namespace"),
                        FindString(claim, "metadata", "name"), kube::PatchType::kMerge,
                        {{"metadata", {{"finalizers", nullptr}}}});
  }
  return Await(gone, "the end of a cluster");
}

// Pods, claims and volumes come from watches, because a list waits until the server's cache is
// current.
Result<Picture> Plane::Look() {
  JsonArray objects = lasting_;
  for (const Watched* watched : watched_) {
    for (const auto& [key, object] : watched->objects) {
      Json& item = objects.emplace_back(object);
      item.get_object()["apiVersion"] = ApiVersionOf(watched->resource);
      item.get_object()["kind"] = watched->resource.kind;
    }
  }
  return PictureOf(objects);
}

Status Plane::ReadContext() {
  std::vector<kube::ApiRequest> requests;
  for (const KnownKind& kind : kinds_) {
    requests.push_back({"GET", kube::PathOf(kind.resource, ""), {}, "", "", {}});
  }
  lasting_.clear();
  const auto answers = transport_->DoAll(requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    NOS_RETURN_IF_ERROR(answers[i].status());
    NOS_RETURN_IF_ERROR(kube::StatusOf(*answers[i]));
    const Resource& resource = kinds_[i].resource;
    const bool watched = std::ranges::any_of(
        watched_, [&](const Watched* one) { return one->resource.kind == resource.kind; });
    if (watched) continue;
    NOS_ASSIGN(Json list, TreeOf(answers[i]->json()));
    const Json* items = Find(list, "items");
    if (items == nullptr || !items->is_array()) continue;
    for (const Json& item : items->get_array()) {
      Json& object = lasting_.emplace_back(item);
      object.get_object()["apiVersion"] = ApiVersionOf(resource);
      object.get_object()["kind"] = resource.kind;
    }
  }
  return Status::Ok();
}

}  // namespace nos::differential
