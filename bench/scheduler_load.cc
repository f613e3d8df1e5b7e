// How fast a scheduler binds pods through a real API server: makes nodes and waiting pods, says so,
// and then watches until every pod is bound. bench/schedulers.sh starts the schedulers.
//
//   nos-scheduler-load KUBECONFIG SCHEDULER_NAME NODES PODS WORKLOAD
//
// WORKLOAD: plain, slices (a MIG slice each), spread (by host and zone), anti (one pod of an app on
// a node). Prints pods per second between the first and the last binding that the watch shows.
#include <fmt/core.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "base/bell.h"
#include "base/clock.h"
#include "cluster/objects.h"
#include "kube/cache.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos {
namespace {

constexpr const char* kNamespace = "load";
constexpr int kZones = 3, kApps = 10;

Json NodeOf(int i, const std::string& workload) {
  const std::string name = fmt::format("load-{:05}", i);
  JsonObject amounts = {{"cpu", "32"}, {"memory", "256Gi"}, {"pods", "110"}};
  if (workload == "slices") amounts["nvidia.com/mig-1g.5gb"] = "56";
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata",
           {{"name", name},
            {"labels",
             {{"kubernetes.io/hostname", name},
              {"topology.kubernetes.io/zone", fmt::format("zone-{}", i % kZones)}}}}},
          {"status", {{"allocatable", amounts}, {"capacity", amounts}}}};
}

Json PodOf(int i, const std::string& workload, const std::string& scheduler) {
  const std::string app = fmt::format("app-{}", i % kApps);
  JsonObject requests = {{"cpu", "100m"}, {"memory", "500Mi"}};
  if (workload == "slices") requests["nvidia.com/mig-1g.5gb"] = "1";
  JsonObject resources = {{"requests", requests}};
  if (workload == "slices") resources["limits"] = {{"nvidia.com/mig-1g.5gb", "1"}};
  JsonObject spec = {
      {"schedulerName", scheduler},
      {"containers", JsonArray{{{"name", "main"}, {"image", "app:1"}, {"resources", resources}}}}};
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
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"namespace", kNamespace},
            {"name", fmt::format("pod-{:05}", i)},
            {"labels", {{"app", app}}}}},
          {"spec", std::move(spec)}};
}

Status CreateAll(kube::Client& client, const kube::Resource& resource,
                 const std::vector<Json>& objects) {
  for (const auto& made : client.CreateAll(resource, objects)) {
    if (!made.ok() && made.status().code() != Code::kAlreadyExists) return made.status();
  }
  return Status::Ok();
}

Status Run(const std::string& kubeconfig, const std::string& scheduler, int nodes, int pods,
           const std::string& workload) {
  NOS_ASSIGN(const kube::ConnectionConfig connection, kube::LoadConnection(kubeconfig, ""));
  kube::HttpTransport transport(connection, {.requests_per_second = 100'000, .burst = 100'000});
  kube::Client client(transport);
  NOS_RETURN_IF_ERROR(CreateAll(
      client, kube::kNamespaces,
      {{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", kNamespace}}}}}));
  // The controller that would make it, and would taint nodes without a kubelet, is not needed.
  NOS_RETURN_IF_ERROR(
      CreateAll(client, {"", "v1", "serviceaccounts", "ServiceAccount", true},
                {{{"apiVersion", "v1"},
                  {"kind", "ServiceAccount"},
                  {"metadata", {{"namespace", kNamespace}, {"name", "default"}}}}}));
  std::vector<Json> objects;
  for (int i = 0; i < nodes; ++i) objects.push_back(NodeOf(i, workload));
  NOS_RETURN_IF_ERROR(CreateAll(client, kube::kNodes, objects));
  // The API server takes a new node for one that is not ready; nobody else would say otherwise.
  std::vector<kube::NamedPatch> ready;
  for (const Json& node : objects) {
    ready.push_back(
        {"", std::string(FindString(node, "metadata", "name")), {{"spec", {{"taints", nullptr}}}}});
  }
  for (const auto& patched : client.PatchAll(kube::kNodes, kube::PatchType::kMerge, ready)) {
    NOS_RETURN_IF_ERROR(patched.status());
  }
  objects.clear();
  for (int i = 0; i < pods; ++i) objects.push_back(PodOf(i, workload, scheduler));
  NOS_RETURN_IF_ERROR(CreateAll(client, kube::kPods, objects));

  Bell bell;
  kube::ReflectorOptions options;
  options.ns = kNamespace;
  options.wake = [&] { bell.Ring(); };
  kube::Cache<cluster::Pod> cache(kube::kPods, cluster::ReadPod, options);
  const SteadyClock clock;
  Time first{}, last{};
  int bound = 0;
  cache.AddHandler([&](const std::string&, const auto& before, const auto& after) {
    if (after == nullptr || after->node_name.empty()) return;
    if (before != nullptr && !before->node_name.empty()) return;
    last = clock.Now();
    if (bound++ == 0) first = last;
  });
  cache.Pump(client, clock.Now());
  std::cout << "created" << std::endl;
  while (bound < pods) {
    cache.Pump(client, clock.Now());
    bell.Wait(std::chrono::seconds(1));
  }
  const double seconds = ToSeconds(last - first);
  std::cout << fmt::format("{} {} nodes {} pods {}: {:.1f} s, {:.0f} pods/s\n", scheduler, nodes,
                           pods, workload, seconds, (pods - 1) / seconds);
  return Status::Ok();
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
