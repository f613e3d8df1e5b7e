#include "controllers/autoscaler/scaling_signal.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cluster/resources.h"
#include "controllers/autoscaler/demand_kinds.h"
#include "controllers/relocation/placeholder.h"
#include "planning/mobility.h"

namespace nos::controllers {
namespace {

using cluster::NodePool;
using cluster::PoolSignal;
using PodPtr = std::shared_ptr<const cluster::Pod>;

// Annotation with a fingerprint of the pod spec. Pods of an older spec are replaced.
constexpr std::string_view kShape = "nos.nebuly.com/demand-shape";
constexpr size_t kMaxPoolName = 50;  // leaves space for prefix and number within 63 characters
constexpr int kMaxShown = 500;       // pods per pool
constexpr Duration kReadAgain = std::chrono::seconds(30);
constexpr Duration kTryAgain = std::chrono::minutes(5);  // after a request has failed

constexpr const char* kClass = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";

std::string NameOf(const std::string& pool) { return "nos-demand-" + pool; }

// FNV-1a. If an update changes the value, all demand objects are recreated once, which is harmless.
std::string Fingerprint(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

std::string_view PoolOf(const cluster::Pod& pod) {
  const auto label = pod.meta.labels.find(kDemandOf);
  return label == pod.meta.labels.end() ? std::string_view() : std::string_view(label->second);
}

std::string_view ShapeOf(const cluster::Pod& pod) {
  const auto shape = pod.meta.annotations.find(kShape);
  return shape == pod.meta.annotations.end() ? std::string_view() : std::string_view(shape->second);
}

// Only resources that an autoscaler can predict for a node that does not exist yet.
JsonObject RequestsFor(const NodePool& pool) {
  JsonObject requests;
  for (const std::string_view name : {"cpu", "memory"}) {
    const auto amount = pool.resources.find(name);
    if (amount != pool.resources.end()) requests[name] = amount->second.ToBinaryString();
  }
  if (pool.gpu.count > 0 && pool.gpu.partitioning == cluster::SharingMode::kNone) {
    requests[cluster::kWholeGpuResource] = std::to_string(pool.gpu.count);
  }
  return requests;
}

Json PodSpecOf(const NodePool& pool, const SignalConfig& config) {
  const JsonObject requests = RequestsFor(pool);
  JsonObject selector;
  for (const auto& [key, value] : pool.node_selector) selector[key] = value;
  JsonArray tolerations;
  for (const cluster::Taint& taint : pool.taints) {
    tolerations.push_back({{"key", taint.key},
                           {"operator", "Equal"},
                           {"value", taint.value},
                           {"effect", taint.effect}});
  }
  JsonObject spec{
      {"nodeSelector", std::move(selector)},
      {"tolerations", std::move(tolerations)},
      {"containers", JsonArray{HoldingContainer("hold", config.image, config.command,
                                                {{"requests", requests}, {"limits", requests}})}},
      // Not 0: the kubelet must release the devices before the pod object is deleted.
      {"terminationGracePeriodSeconds", 1},
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"securityContext",
       {{"runAsNonRoot", true},
        {"runAsUser", 65532},
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
  if (!config.priority_class.empty()) spec["priorityClassName"] = config.priority_class;
  if (!config.pull_secrets.empty()) spec["imagePullSecrets"] = PullSecrets(config.pull_secrets);
  return spec;
}

Json MetaOf(const std::string& name, const SignalConfig& config, const std::string& pool,
            const std::string& shape) {
  return {{"name", name},
          {"namespace", config.ns},
          {"labels", {{kDemandOf, pool}, {"app.kubernetes.io/managed-by", "nos"}}},
          {"annotations", {{kShape, shape}, {planning::kSafeToEvict, "true"}}}};
}

Status Unless(Code fine, const Status& status) {
  return status.code() == fine ? Status::Ok() : status;
}

// Keeps the first of several independent errors.
void Keep(Status& first, const Status& next) {
  if (first.ok()) first = next;
}

Status DeletePods(const std::vector<PodPtr>& pods, kube::Client& client) {
  Status first;
  for (const PodPtr& pod : pods) {
    const Status deleted = client.Delete(kube::kPods, pod->meta.ns, pod->meta.name,
                                         {{"preconditions", {{"uid", pod->meta.uid}}}});
    // A conflict means that the name belongs to a new pod, which the cache will show.
    Keep(first, Unless(Code::kConflict, Unless(Code::kNotFound, deleted)));
  }
  return first;
}

bool HasCondition(const Json& object, std::string_view type) {
  const Json* conditions = Find(object, "status", "conditions");
  if (conditions == nullptr || !conditions->is_array()) return false;
  return std::ranges::any_of(conditions->get_array(), [&](const Json& condition) {
    return FindString(condition, "type") == type && FindString(condition, "status") == "True";
  });
}

// Empty if the cluster does not have this kind.
Result<std::vector<Json>> ListDemand(const kube::Resource& resource, const std::string& ns,
                                     kube::Client& client) {
  const kube::ListOptions options{
      .label_selector = std::string(kDemandOf), .field_selector = {}, .resource_version = {}};
  Result<kube::ObjectList> list = client.List(resource, ns, options);
  if (list.status().code() == Code::kNotFound) return std::vector<Json>();
  if (!list.ok()) return list.status();
  return std::move(list->items);
}

// Returns -1 if the count cannot be read.
int64_t CountOf(const Json& request) {
  const Json* sets = Find(request, "spec", "podSets");
  if (sets == nullptr || !sets->is_array() || sets->get_array().size() != 1) return -1;
  const Json* count = Find(sets->get_array().front(), "count");
  return count != nullptr && count->is_int64() ? count->get_int64() : -1;
}

// True if the request can stay as it is while `count` nodes are missing. Recreating a request in
// progress would order the nodes that are already starting a second time.
bool Serves(const Json& request, int count, const std::string& shape, Time now) {
  if (FindString(request, "metadata", "annotations", kShape) != shape) return false;
  const int64_t asked = CountOf(request);
  if (HasCondition(request, "Failed")) {
    const Result<Time> made = ParseTime(FindString(request, "metadata", "creationTimestamp"));
    if (!made.ok() || now >= *made + kTryAgain) return false;
  }
  return asked == count || (asked > count && HasCondition(request, "Provisioned"));
}

}  // namespace

bool IsDemand(const cluster::Pod& pod) { return !PoolOf(pod).empty(); }

Status ScalingSignal::Show(const NodePool& pool, int count, const reconcile::Listers& view,
                           kube::Client& client, Time now) {
  if (pool.meta.name.size() > kMaxPoolName) {
    return Invalid(fmt::format(
        "metadata.name: a pool with a signal has a name of {} characters at most, this one {}: "
        "make it anew under a shorter one",
        kMaxPoolName, pool.meta.name.size()));
  }
  return pool.signal == PoolSignal::kWaitingPods ? ShowPods(pool, count, view, client)
                                                 : ShowRequest(pool, count, client, now);
}

Status ScalingSignal::ShowPods(const NodePool& pool, int count, const reconcile::Listers& view,
                               kube::Client& client) {
  const size_t most = static_cast<size_t>(std::clamp(count, 0, kMaxShown));
  const Json spec = PodSpecOf(pool, config_);
  const std::string shape = Fingerprint(WriteJson(spec));
  std::vector<PodPtr> waiting, surplus;
  std::set<std::string, std::less<>> names;
  const auto pods = view.pods.Snapshot();
  for (const PodPtr& pod : *pods) {
    if (pod->meta.ns != config_.ns || PoolOf(*pod) != pool.meta.name) continue;
    names.insert(pod->meta.name);
    if (pod->meta.deleted) continue;
    const bool waits = pod->node_name.empty() && !pod->Finished() && ShapeOf(*pod) == shape;
    (waits ? waiting : surplus).push_back(pod);
  }
  std::ranges::stable_sort(waiting, {}, [](const PodPtr& pod) { return pod->meta.created; });
  for (; waiting.size() > most; waiting.pop_back()) surplus.push_back(waiting.back());
  Status first = DeletePods(surplus, client);

  std::vector<Json> missing;
  for (int n = 0; waiting.size() + missing.size() < most; ++n) {
    std::string name = fmt::format("{}-{}", NameOf(pool.meta.name), n);
    if (names.contains(name)) continue;
    missing.push_back({{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"metadata", MetaOf(name, config_, pool.meta.name, shape)},
                       {"spec", spec}});
  }
  const auto made = client.CreateAll(kube::kPods, missing);
  // The cache will show pods that already exist.
  for (const auto& each : made) Keep(first, Unless(Code::kAlreadyExists, each.status()));
  return first.Within("pods that ask for nodes");
}

Status ScalingSignal::ShowRequest(const NodePool& pool, int count, kube::Client& client, Time now) {
  const std::string& name = pool.meta.name;
  if (!config_.provisioning_requests) {
    return Invalid(
        "spec.signal: ProvisioningRequests are switched off here (provisioningRequests of the "
        "configuration, autoscaler.provisioningRequests of the chart): switch them on, or use "
        "Pods");
  }
  count = std::max(count, 0);
  const Json spec = PodSpecOf(pool, config_);
  const std::string shape = Fingerprint(WriteJson(spec));
  Request& known = requests_[name];
  if (known.count == count && known.shape == shape && now < known.read + kReadAgain) {
    return Status::Ok();
  }
  const Result<Json> there = client.Get(kProvisioningRequests, config_.ns, NameOf(name));
  if (!there.ok() && there.status().code() != Code::kNotFound) return there.status();
  const bool never = known.count < 0;
  known.count = -1;  // until all writes have succeeded
  if (count == 0) {
    // On the first call a PodTemplate may be left over from a request that is already deleted.
    if (there.ok() || never) NOS_RETURN_IF_ERROR(DeleteRequest(name, client));
  } else if (!there.ok() || !Serves(*there, count, shape, now)) {
    NOS_RETURN_IF_ERROR(Replace(pool, count, spec, shape, client));
  }
  known = {count, shape, now};
  return Status::Ok();
}

Status ScalingSignal::Replace(const NodePool& pool, int count, const Json& spec,
                              const std::string& shape, kube::Client& client) {
  const std::string& name = pool.meta.name;
  const Json meta = MetaOf(NameOf(name), config_, name, shape);
  NOS_RETURN_IF_ERROR(DeleteRequest(name, client));
  const Json pods = {
      {"apiVersion", "v1"},
      {"kind", "PodTemplate"},
      {"metadata", meta},
      {"template", {{"metadata", {{"labels", {{kDemandOf, name}}}}}, {"spec", spec}}}};
  NOS_RETURN_IF_ERROR(client.Create(kPodTemplates, config_.ns, pods).status());
  const Json set = {{"podTemplateRef", {{"name", NameOf(name)}}}, {"count", count}};
  const Json request = {{"apiVersion", "autoscaling.x-k8s.io/v1"},
                        {"kind", "ProvisioningRequest"},
                        {"metadata", meta},
                        {"spec", {{"provisioningClassName", kClass}, {"podSets", JsonArray{set}}}}};
  Status made = client.Create(kProvisioningRequests, config_.ns, request).status();
  if (made.code() != Code::kNotFound) return made;
  return Invalid(
      "spec.signal: this cluster has no ProvisioningRequests (autoscaling.x-k8s.io/v1): install "
      "their definition with cluster-autoscaler, or use Pods");
}

Status ScalingSignal::DeleteRequest(const std::string& pool, kube::Client& client) {
  for (const kube::Resource* resource : {&kProvisioningRequests, &kPodTemplates}) {
    const Status deleted = client.Delete(*resource, config_.ns, NameOf(pool));
    NOS_RETURN_IF_ERROR(Unless(Code::kNotFound, deleted));
  }
  return Status::Ok();
}

Status ScalingSignal::FindRequests(kube::Client& client) {
  for (const kube::Resource* resource : {&kProvisioningRequests, &kPodTemplates}) {
    if (HasFormer()) {
      NOS_ASSIGN(const std::vector<Json> former, ListDemand(*resource, config_.former_ns, client));
      for (const Json& item : former) {
        const Status deleted =
            client.Delete(*resource, config_.former_ns, FindString(item, "metadata", "name"));
        NOS_RETURN_IF_ERROR(Unless(Code::kNotFound, deleted));
      }
    }
    NOS_ASSIGN(const std::vector<Json> items, ListDemand(*resource, config_.ns, client));
    for (const Json& item : items) {
      const std::string pool(FindString(item, "metadata", "labels", kDemandOf));
      if (!pool.empty() && FindString(item, "metadata", "name") == NameOf(pool)) requests_[pool];
    }
  }
  found_ = true;
  return Status::Ok();
}

Status ScalingSignal::Clean(const reconcile::Listers& view, kube::Client& client) {
  Status first;
  if (config_.provisioning_requests && !found_) first = FindRequests(client);
  std::vector<PodPtr> ours, former;
  const auto pods = view.pods.Snapshot();
  for (const PodPtr& pod : *pods) {
    if (!IsDemand(*pod) || pod->meta.deleted) continue;
    if (pod->meta.ns == config_.ns) ours.push_back(pod);
    if (HasFormer() && pod->meta.ns == config_.former_ns) former.push_back(pod);
  }
  Keep(first, DeletePods(former, client));
  if (ours.empty() && requests_.empty()) return first;

  const cluster::ClusterContext context = view.context->Collect();
  const auto signals = [&](std::string_view name, PoolSignal signal) {
    const NodePool* pool = context.pools.Find(name);
    return pool != nullptr && pool->signal == signal;
  };
  std::erase_if(ours,
                [&](const PodPtr& pod) { return signals(PoolOf(*pod), PoolSignal::kWaitingPods); });
  Keep(first, DeletePods(ours, client));
  for (auto it = requests_.begin(); it != requests_.end();) {
    const bool stays = signals(it->first, PoolSignal::kProvisioningRequest);
    const Status deleted = stays ? Status::Ok() : DeleteRequest(it->first, client);
    Keep(first, deleted);
    it = stays || !deleted.ok() ? std::next(it) : requests_.erase(it);
  }
  return first;
}

}  // namespace nos::controllers
