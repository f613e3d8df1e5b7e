// Measures how fast a scheduler binds pods through a real API server: creates nodes and pending
// pods, prints a line, and then watches until every pod is bound. bench/schedulers.sh starts the
// schedulers. They elect a leader by the Lease load/load, which this program holds until it reads a
// line. Hence a scheduler has read all objects before it may begin, and the Lease records when it
// began.
//
//   nos-scheduler-load KUBECONFIG SCHEDULER_NAME NODES PODS WORKLOAD
//
// WORKLOAD: plain, slices (a MIG slice each), claims (a ResourceClaim each, for a MIG slice of the
// smallest profile; GPUs as NVIDIA's driver publishes them), claims3 (the same with three profiles
// in turn), claims-full and claims3-full (the same while a pod on each node has 39 of the node's 56
// compute slices), template-claims (the same as claims, by a ResourceClaimTemplate; this program
// plays the controller that makes the claims), spread (by host and zone), anti (one pod of an app
// per node), partition (a MIG slice each, on GPUs without instances; this program plays the agents,
// which create them at once). Prints the time from the scheduler's start until the watch has shown
// every pod bound, the resulting pods per second, and the time from the first binding to the last,
// which excludes the work before it.
//
// SCHEDULER_NAME nobody: no scheduler runs; this program itself binds every pod, to one node after
// the other and on 32 threads, which measures the API server's throughput without any decision.
// With workload claims it first writes a finalizer and an allocation into each claim, as a
// scheduler does. With workload partition it first writes each pod's node into its status, as nos
// scheduler does, and creates no instances.
//
// WORKLOAD one: pods arrive one by one. Prints the time from the moment the watch shows a pod until
// it shows it bound, by the scheduler and, alternately, by this program itself, which decides
// nothing and binds to the first node. one-claims, one-claims3, one-claims-full: the same with a
// claim each, which this program allocates as above.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/wake_signal.h"
#include "bench/nvidia_slices.h"
#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "gpu/catalogue.h"
#include "kube/cache.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos {
namespace {

constexpr const char* kNamespace = "load";  // also the name of the Lease
constexpr int kZones = 3, kApps = 10, kGpus = 8;
constexpr const char* kProfiles[] = {"1g.10gb", "2g.20gb", "3g.40gb"};
constexpr const char* kNobody = "nobody";  // scheduler name for runs without a scheduler
const kube::Resource kClasses{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false};
const kube::Resource kSlices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
const kube::Resource kTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates",
                                "ResourceClaimTemplate", true};
const kube::Resource kClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true};
constexpr const char* kStatusLayout = "nos.nebuly.com/status-layout-";

std::string NodeName(int i) { return fmt::format("load-{:05}", i); }
std::string PodName(int i) { return fmt::format("pod-{:05}", i); }

bool Claims(const std::string& workload) { return workload.find("claims") != std::string::npos; }
bool ByTemplate(const std::string& workload) { return workload.starts_with("template"); }
bool IsFull(const std::string& workload) { return workload.ends_with("-full"); }

std::string ClaimName(int i) { return fmt::format("claim-{:05}", i); }

// The claim of the i-th pod.
Json ClaimOf(int i, const std::string& workload) {
  const bool several = workload.find("claims3") != std::string::npos;
  const char* profile = kProfiles[several ? i % 3 : 0];
  const std::string selector =
      fmt::format("device.attributes['gpu.nvidia.com'].profile == '{}'", profile);
  const Json exactly = {{"deviceClassName", "mig.nvidia.com"},
                        {"selectors", JsonArray{{{"cel", {{"expression", selector}}}}}}};
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata", {{"namespace", kNamespace}, {"name", ClaimName(i)}}},
          {"spec",
           {{"devices", {{"requests", JsonArray{{{"name", "slice"}, {"exactly", exactly}}}}}}}}};
}

Json ClassOfSlices() {
  return {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "DeviceClass"},
      {"metadata", {{"name", "mig.nvidia.com"}}},
      {"spec",
       {{"selectors", JsonArray{{{"cel",
                                  {{"expression",
                                    "device.driver == 'gpu.nvidia.com' && "
                                    "device.attributes['gpu.nvidia.com'].type == 'mig'"}}}}}}}}};
}

Json NodeOf(int i, const std::string& workload) {
  const std::string name = NodeName(i);
  JsonObject amounts = {{"cpu", "32"}, {"memory", "256Gi"}, {"pods", "110"}};
  if (workload == "slices") amounts["nvidia.com/mig-1g.5gb"] = "56";
  JsonObject labels = {{"kubernetes.io/hostname", name},
                       {"topology.kubernetes.io/zone", fmt::format("zone-{}", i % kZones)}};
  JsonObject annotations;
  if (workload == "partition") {
    labels["nos.nebuly.com/gpu-partitioning"] = "mig";
    labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
    labels["nvidia.com/gpu.count"] = std::to_string(kGpus);
    for (int gpu = 0; gpu < kGpus; ++gpu) annotations[kStatusLayout + std::to_string(gpu)] = "";
  }
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", labels}, {"annotations", annotations}}},
          {"status", {{"allocatable", amounts}, {"capacity", amounts}}}};
}

Json PodOf(int i, const std::string& workload, const std::string& scheduler) {
  const std::string app = fmt::format("app-{}", i % kApps);
  JsonObject requests = {{"cpu", "100m"}, {"memory", "500Mi"}};
  const bool slices = workload == "slices" || workload == "partition";
  if (slices) requests["nvidia.com/mig-1g.5gb"] = "1";
  JsonObject resources = {{"requests", requests}};
  if (slices) resources["limits"] = {{"nvidia.com/mig-1g.5gb", "1"}};
  JsonObject spec = {
      {"schedulerName", scheduler},
      {"containers", JsonArray{{{"name", "main"}, {"image", "app:1"}, {"resources", resources}}}}};
  if (Claims(workload)) {
    spec["resourceClaims"] = JsonArray{
        ByTemplate(workload) ? Json{{"name", "gpu"}, {"resourceClaimTemplateName", "slice"}}
                             : Json{{"name", "gpu"}, {"resourceClaimName", ClaimName(i)}}};
  }
  const Json same = {{"matchLabels", {{"app", app}}}};
  if (workload == "spread") {
    JsonArray constraints;
    for (const char* key : {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}) {
      constraints.push_back({{"maxSkew", 5},
                             {"topologyKey", key},
                             {"whenUnsatisfiable", "DoNotSchedule"},
                             {"labelSelector", same}});
    }
    spec["topologySpreadConstraints"] = std::move(constraints);
  } else if (workload == "anti") {
    spec["affinity"] = {
        {"podAntiAffinity",
         {{"requiredDuringSchedulingIgnoredDuringExecution",
           JsonArray{{{"labelSelector", same}, {"topologyKey", "kubernetes.io/hostname"}}}}}}};
  }
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"namespace", kNamespace}, {"name", PodName(i)}, {"labels", {{"app", app}}}}},
      {"spec", std::move(spec)}};
}

// The status of a claim with these devices of the node.
Json AllocatedOn(const std::string& node, const std::vector<std::string>& devices,
                 const std::string& pod) {
  const Json field = {{"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{node}}};
  const Json terms = JsonArray{{{"matchFields", JsonArray{field}}}};
  JsonArray results;
  for (const std::string& device : devices) {
    results.push_back(JsonObject{
        {"request", "slice"}, {"driver", "gpu.nvidia.com"}, {"pool", node}, {"device", device}});
  }
  return {{"allocation",
           {{"devices", {{"results", std::move(results)}}},
            {"nodeSelector", {{"nodeSelectorTerms", terms}}}}},
          {"reservedFor", JsonArray{{{"resource", "pods"}, {"name", pod}, {"uid", pod}}}}};
}

// The two writes of a scheduler. The pod's uid is made up: the API server does not look.
Status Allocate(kube::Client& client, int i, const std::string& node) {
  const std::string claim = ClaimName(i);
  const Json finalizer = {
      {"metadata", {{"finalizers", JsonArray{"resource.kubernetes.io/delete-protection"}}}}};
  NOS_RETURN_IF_ERROR(
      client.Patch(kClaims, kNamespace, claim, kube::PatchType::kMerge, finalizer).status());
  const Json status = AllocatedOn(node, {"gpu-0-mig-1g10gb-0"}, PodName(i));
  return client
      .Patch(kClaims, kNamespace, claim, kube::PatchType::kMerge, {{"status", status}}, "status")
      .status();
}

Status CreateAll(kube::Client& client, const kube::Resource& resource,
                 const std::vector<Json>& objects) {
  for (const auto& made : client.CreateAll(resource, objects)) {
    if (!made.ok() && made.status().code() != Code::kAlreadyExists) return made.status();
  }
  return Status::Ok();
}

// A pod on each node whose claim has five of the eight GPUs and four of the seven compute slices of
// another: 39 of 56.
Status FillNodes(kube::Client& client, int nodes) {
  std::vector<std::string> devices;
  for (int gpu = 0; gpu < 5; ++gpu) devices.push_back(fmt::format("gpu-{}-mig-7g80gb-0-0", gpu));
  devices.emplace_back("gpu-5-mig-4g40gb-5-0");
  std::vector<Json> pods, claims;
  std::vector<kube::NamedPatch> allocations;
  const Json exactly = {{"deviceClassName", "mig.nvidia.com"},
                        {"count", static_cast<int64_t>(devices.size())}};
  const JsonArray requests{{{"name", "slice"}, {"exactly", exactly}}};
  for (int i = 0; i < nodes; ++i) {
    const std::string name = fmt::format("held-{:05}", i);
    claims.push_back({{"apiVersion", "resource.k8s.io/v1"},
                      {"kind", "ResourceClaim"},
                      {"metadata",
                       {{"namespace", kNamespace},
                        {"name", name},
                        {"finalizers", JsonArray{"resource.kubernetes.io/delete-protection"}}}},
                      {"spec", {{"devices", {{"requests", requests}}}}}});
    Json pod = PodOf(i, "plain", kNobody);
    MakeObject(pod, "metadata")["name"] = name;
    MakeObject(pod, "spec")["nodeName"] = NodeName(i);
    MakeObject(pod, "spec")["resourceClaims"] =
        JsonArray{{{"name", "gpu"}, {"resourceClaimName", name}}};
    pods.push_back(std::move(pod));
    allocations.push_back(
        {kNamespace, name, {{"status", AllocatedOn(NodeName(i), devices, name)}}});
  }
  NOS_RETURN_IF_ERROR(CreateAll(client, kClaims, claims));
  NOS_RETURN_IF_ERROR(CreateAll(client, kube::kPods, pods));
  for (const auto& patched :
       client.PatchAll(kClaims, kube::PatchType::kMerge, allocations, "status")) {
    NOS_RETURN_IF_ERROR(patched.status());
  }
  return Status::Ok();
}

// Creates the objects that the API server needs before it accepts the pods.
Status CreateNodes(kube::Client& client, int nodes, const std::string& workload) {
  NOS_RETURN_IF_ERROR(CreateAll(
      client, kube::kNamespaces,
      {{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", kNamespace}}}}}));
  // Replaces the controller that would create it; that controller manager would also taint nodes
  // without a kubelet.
  NOS_RETURN_IF_ERROR(
      CreateAll(client, {"", "v1", "serviceaccounts", "ServiceAccount", true},
                {{{"apiVersion", "v1"},
                  {"kind", "ServiceAccount"},
                  {"metadata", {{"namespace", kNamespace}, {"name", "default"}}}}}));
  std::vector<Json> objects;
  for (int i = 0; i < nodes; ++i) objects.push_back(NodeOf(i, workload));
  NOS_RETURN_IF_ERROR(CreateAll(client, kube::kNodes, objects));
  if (Claims(workload)) {
    NOS_RETURN_IF_ERROR(CreateAll(client, kClasses, {ClassOfSlices()}));
    for (int i = 0; i < nodes; ++i) {
      NOS_RETURN_IF_ERROR(CreateAll(client, kSlices, bench::NvidiaSlices(NodeName(i))));
    }
  }
  // The API server gives a new node a not-ready taint; no other component would remove it.
  std::vector<kube::NamedPatch> ready;
  for (const Json& node : objects) {
    ready.push_back(
        {"", std::string(FindString(node, "metadata", "name")), {{"spec", {{"taints", nullptr}}}}});
  }
  for (const auto& patched : client.PatchAll(kube::kNodes, kube::PatchType::kMerge, ready)) {
    NOS_RETURN_IF_ERROR(patched.status());
  }
  return IsFull(workload) ? FillNodes(client, nodes) : Status::Ok();
}

// Prints that all objects exist, and releases the Lease after it has read a line.
Status AwaitStart(kube::Client& client) {
  constexpr const char* kLongAgo = "2000-01-01T00:00:00.000000Z";
  const Json held = {{"apiVersion", "coordination.k8s.io/v1"},
                     {"kind", "Lease"},
                     {"metadata", {{"namespace", kNamespace}, {"name", kNamespace}}},
                     {"spec",
                      {{"holderIdentity", "load"},
                       {"leaseDurationSeconds", 3600},
                       {"acquireTime", kLongAgo},
                       {"renewTime", kLongAgo}}}};
  NOS_RETURN_IF_ERROR(client.Create(kube::kLeases, kNamespace, held).status());
  std::cout << "created" << std::endl;
  if (std::string line; !std::getline(std::cin, line)) return Invalid("nobody says when to begin");
  return client
      .Patch(kube::kLeases, kNamespace, kNamespace, kube::PatchType::kMerge,
             {{"spec", {{"holderIdentity", ""}}}})
      .status();
}

Result<Time> Began(kube::Client& client) {
  NOS_ASSIGN(const Json lease, client.Get(kube::kLeases, kNamespace, kNamespace));
  return ParseTime(FindString(lease, "spec", "acquireTime"));
}

kube::ReflectorOptions Wake(WakeSignal& bell, const std::string& ns) {
  kube::ReflectorOptions options;
  options.ns = ns;
  options.wake = [&bell] { bell.Ring(); };
  return options;
}

// Agents that apply their nodes' specs at once and report it, together with the resource counts
// that their kubelets would publish.
class Agents {
 public:
  explicit Agents(WakeSignal& bell) : nodes_(kube::kNodes, cluster::ReadNode, Wake(bell, "")) {
    nodes_.AddHandler([this](const std::string&, const auto&, const auto& after) {
      if (after != nullptr && cluster::SpecPlan(*after) != cluster::StatusPlan(*after)) {
        asked_.push_back(after);
      }
    });
  }

  Status Obey(kube::Client& client, Time now) {
    nodes_.Pump(client, now);
    std::vector<kube::NamedPatch> answers;
    for (const auto& node : asked_) answers.push_back({"", node->meta.name, AnswerOf(*node)});
    asked_.clear();
    const auto written = client.PatchAll(kube::kNodes, kube::PatchType::kMerge, answers, "status");
    for (const auto& answer : written) NOS_RETURN_IF_ERROR(answer.status());
    return Status::Ok();
  }

 private:
  static Json AnswerOf(const cluster::Node& node) {
    std::vector<cluster::Gpu> gpus = cluster::ReadNodeGpus(node, gpu::Catalogue::Builtin()).gpus;
    JsonObject allocatable, annotations;
    std::map<std::string, int> counts;
    for (const cluster::TargetLayout& target : cluster::ReadSpec(node, {true, false, gpus, {}})) {
      const auto gpu = std::ranges::find(gpus, target.index, &cluster::Gpu::index);
      gpu->instances.clear();
      for (const gpu::Placement& placement : target.placements) {
        gpu->instances.push_back({placement, false, ""});
        ++counts[gpu->model->profile(placement.profile).resource_name];
      }
    }
    for (const auto& [resource, count] : counts) allocatable[resource] = std::to_string(count);
    for (const auto& [key, value] : cluster::StatusPatch(node, gpus, cluster::SpecPlan(node))) {
      annotations[key] = value ? Json(*value) : Json();
    }
    return {{"metadata", {{"annotations", annotations}}},
            {"status", {{"allocatable", allocatable}, {"capacity", allocatable}}}};
  }

  kube::Cache<cluster::Node> nodes_;
  std::vector<std::shared_ptr<const cluster::Node>> asked_;
};

// The times at which the watch showed pods, and showed them bound.
class Watched {
 public:
  Watched() : pods_(kube::kPods, cluster::ReadPod, Wake(bell_, kNamespace)) {
    pods_.AddHandler([this](const std::string& key, const auto& before, const auto& after) {
      const auto now = clock_.Now();
      if (before == nullptr) seen_[key] = now;
      if (after == nullptr || after->node_name.empty()) return;
      if (after->scheduler_name == kNobody && before == nullptr) return;  // of FillNodes
      if (before == nullptr || before->node_name.empty()) bound_[key] = now;
    });
  }
  void Pump(kube::Client& client) { pods_.Pump(client, clock_.Now()); }
  void Wait() { bell_.Wait(std::chrono::seconds(1)); }
  const std::map<std::string, Time>& seen() const { return seen_; }
  const std::map<std::string, Time>& bound() const { return bound_; }
  Time Now() const { return clock_.Now(); }
  WakeSignal& bell() { return bell_; }

 private:
  WakeSignal bell_;
  kube::Cache<cluster::Pod> pods_;
  const SystemClock clock_;  // the clock used in the Lease
  std::map<std::string, Time> seen_, bound_;
};

// Binds all pods during its lifetime.
class Binders {
 public:
  Binders(kube::Client& client, int nodes, int pods, const std::string& workload)
      : client_(client),
        nodes_(nodes),
        pods_(pods),
        nominates_(workload == "partition"),
        allocates_(Claims(workload)) {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
  }
  bool failed() const { return failed_; }

 private:
  static constexpr int kThreads = 32;

  void Run() {
    for (int i = next_++; i < pods_ && !failed_; i = next_++) {
      const bool ready = !allocates_ || Allocate(client_, i, NodeName(i % nodes_)).ok();
      if (!ready || !Bind(PodName(i), NodeName(i % nodes_)).ok()) failed_ = true;
    }
  }

  Status Bind(const std::string& pod, const std::string& node) {
    if (nominates_) {
      const Json patch = {{"status", {{"nominatedNodeName", node}}}};
      NOS_RETURN_IF_ERROR(
          client_.Patch(kube::kPods, kNamespace, pod, kube::PatchType::kMerge, patch, "status")
              .status());
    }
    return client_.Bind(kNamespace, pod, node);
  }

  kube::Client& client_;
  const int nodes_, pods_;
  const bool nominates_, allocates_;
  std::atomic<int> next_{0};
  std::atomic<bool> failed_{false};
  std::vector<std::jthread> threads_;  // last: they use the others
};

Status CreateClaims(kube::Client& client, int pods, const std::string& workload) {
  std::vector<Json> claims;
  for (int i = 0; i < pods; ++i) claims.push_back(ClaimOf(i, workload));
  return CreateAll(client, kClaims, claims);
}

// Makes a claim for each pod, as kube-controller-manager does. REQUIRES: the pods exist.
Status CreateClaimsByTemplate(kube::Client& client, const std::string& workload) {
  Json claim = ClaimOf(0, workload);
  const Json spec = {{"spec", *Find(claim, "spec")}};
  NOS_RETURN_IF_ERROR(client
                          .Create(kTemplates, kNamespace,
                                  {{"apiVersion", "resource.k8s.io/v1"},
                                   {"kind", "ResourceClaimTemplate"},
                                   {"metadata", {{"namespace", kNamespace}, {"name", "slice"}}},
                                   {"spec", spec}})
                          .status());
  NOS_ASSIGN(const auto pods, client.List(kube::kPods, kNamespace, {}));
  std::vector<Json> claims;
  std::vector<kube::NamedPatch> statuses;
  for (const Json& pod : pods.items) {
    const std::string name(FindString(pod, "metadata", "name"));
    int i = 0;
    if (std::sscanf(name.c_str(), "pod-%d", &i) != 1) continue;  // of FillNodes
    claim = ClaimOf(i, workload);
    JsonObject& metadata = MakeObject(claim, "metadata");
    metadata["annotations"] = {{"resource.kubernetes.io/pod-claim-name", "gpu"}};
    metadata["ownerReferences"] = JsonArray{{{"apiVersion", "v1"},
                                             {"kind", "Pod"},
                                             {"name", name},
                                             {"uid", FindString(pod, "metadata", "uid")},
                                             {"controller", true},
                                             {"blockOwnerDeletion", true}}};
    claims.push_back(claim);
    const Json made = {{"name", "gpu"}, {"resourceClaimName", ClaimName(i)}};
    statuses.push_back(
        {kNamespace, name, {{"status", {{"resourceClaimStatuses", JsonArray{made}}}}}});
  }
  NOS_RETURN_IF_ERROR(CreateAll(client, kClaims, claims));
  for (const auto& patched :
       client.PatchAll(kube::kPods, kube::PatchType::kMerge, statuses, "status")) {
    NOS_RETURN_IF_ERROR(patched.status());
  }
  return Status::Ok();
}

Status MeasureThroughput(kube::Client& client, const std::string& scheduler, int nodes, int pods,
                         const std::string& workload) {
  std::vector<Json> objects;
  for (int i = 0; i < pods; ++i) objects.push_back(PodOf(i, workload, scheduler));
  NOS_RETURN_IF_ERROR(CreateAll(client, kube::kPods, objects));
  if (Claims(workload)) {
    NOS_RETURN_IF_ERROR(ByTemplate(workload) ? CreateClaimsByTemplate(client, workload)
                                             : CreateClaims(client, pods, workload));
  }
  Watched watched;
  Agents agents(watched.bell());
  watched.Pump(client);
  std::optional<Binders> binders;
  Time began;
  if (scheduler == kNobody) {
    began = watched.Now();
    binders.emplace(client, nodes, pods, workload);
  } else {
    NOS_RETURN_IF_ERROR(AwaitStart(client));
  }
  while (watched.bound().size() < static_cast<size_t>(pods)) {
    if (binders && binders->failed()) return Status(Code::kUnavailable, "a binding failed");
    watched.Pump(client);
    if (workload == "partition") NOS_RETURN_IF_ERROR(agents.Obey(client, watched.Now()));
    watched.Wait();
  }
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [first, last] = std::ranges::minmax_element(watched.bound(), by_time);
  if (!binders) {
    NOS_ASSIGN(began, Began(client));
  }
  const double seconds = ToSeconds(last->second - began);
  std::cout << fmt::format(
      "{} {} nodes {} pods {}: all bound {:.1f} s after the start, {:.0f} pods/s; first to last "
      "binding {:.1f} s\n",
      scheduler, nodes, pods, workload, seconds, pods / seconds,
      ToSeconds(last->second - first->second));
  return Status::Ok();
}

std::string Spread(std::vector<double> milliseconds) {
  std::ranges::sort(milliseconds);
  const auto at = [&](double share) {
    return milliseconds[static_cast<size_t>(share * static_cast<double>(milliseconds.size() - 1))];
  };
  return fmt::format("median {:.1f} ms, p99 {:.1f} ms, most {:.1f} ms", at(0.5), at(0.99), at(1));
}

Status MeasureLatency(kube::Client& client, const std::string& scheduler, int nodes, int pods,
                      const std::string& workload) {
  constexpr int kWarmUp = 20;
  Watched watched;
  watched.Pump(client);
  NOS_RETURN_IF_ERROR(AwaitStart(client));
  std::vector<double> of_scheduler, of_itself;
  for (int i = 0; i < 2 * (pods + kWarmUp); ++i) {
    const bool itself = i % 2 == 1;
    const Json pod = PodOf(i, workload, itself ? kNobody : scheduler);
    if (Claims(workload)) {
      NOS_RETURN_IF_ERROR(client.Create(kClaims, kNamespace, ClaimOf(i, workload)).status());
    }
    NOS_RETURN_IF_ERROR(client.Create(kube::kPods, kNamespace, pod).status());
    const std::string name(FindString(pod, "metadata", "name"));
    const std::string key = std::string(kNamespace) + "/" + name;
    for (bool asked = false;; watched.Wait()) {
      watched.Pump(client);
      if (watched.bound().contains(key)) break;
      if (!itself || asked || !watched.seen().contains(key)) continue;
      if (Claims(workload)) NOS_RETURN_IF_ERROR(Allocate(client, i, NodeName(0)));
      NOS_RETURN_IF_ERROR(client.Bind(kNamespace, name, NodeName(0)));
      asked = true;
    }
    if (i < 2 * kWarmUp) continue;
    (itself ? of_itself : of_scheduler)
        .push_back(1000 * ToSeconds(watched.bound().at(key) - watched.seen().at(key)));
  }
  std::cout << fmt::format("{} {} nodes {} pods one by one ({}): {}; a bare binding: {}\n",
                           scheduler, nodes, pods, workload, Spread(of_scheduler),
                           Spread(of_itself));
  return Status::Ok();
}

Status Run(const std::string& kubeconfig, const std::string& scheduler, int nodes, int pods,
           const std::string& workload) {
  NOS_ASSIGN(const kube::ConnectionConfig connection, kube::LoadConnection(kubeconfig, ""));
  kube::HttpTransport transport(connection, {.requests_per_second = 100'000, .burst = 100'000});
  kube::Client client(transport);
  NOS_RETURN_IF_ERROR(CreateNodes(client, nodes, workload));
  return workload.starts_with("one") ? MeasureLatency(client, scheduler, nodes, pods, workload)
                                     : MeasureThroughput(client, scheduler, nodes, pods, workload);
}

}  // namespace
}  // namespace nos

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: nos-scheduler-load KUBECONFIG SCHEDULER NODES PODS WORKLOAD\n";
    return 2;
  }
  const nos::Status ran =
      nos::Run(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]), argv[5]);
  if (!ran.ok()) std::cerr << ran.ToString() << "\n";
  return ran.ok() ? 0 : 1;
}
