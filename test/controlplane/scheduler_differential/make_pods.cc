#include <fmt/core.h>

#include "scheduler_differential/generate.h"

namespace nos::differential {

const std::vector<std::string> kOtherProfiles{"differential-most", "differential-ratio",
                                              "differential-added", "differential-spread"};

namespace {

JsonObject MakeResources(Draw& draw, bool small) {
  JsonObject requests, limits;
  const auto cpu = [&] {
    return small ? draw.Of({"50m", "100m", "250m", "500m"})
                 : draw.Of({"100m", "250m", "333m", "500m", "1", "1500m", "3"});
  };
  const auto memory = [&] {
    return small ? draw.Of({"32Mi", "64Mi", "300M"})
                 : draw.Of({"64Mi", "200Mi", "1Gi", "1500Mi", "3Gi"});
  };
  if (draw.Chance(0.75)) requests["cpu"] = cpu();
  if (draw.Chance(0.65)) requests["memory"] = memory();
  if (draw.Chance(0.12)) requests["ephemeral-storage"] = draw.Of({"500Mi", "1Gi", "3Gi"});
  if (requests.empty() && draw.Chance(0.4)) limits["cpu"] = cpu();  // requests default to them
  if (draw.Chance(0.1)) limits["example.com/widget"] = draw.Of({"1", "2"});
  if (draw.Chance(0.05)) limits["nvidia.com/gpu"] = draw.Of({"1", "2"});
  if (draw.Chance(0.06)) limits["nvidia.com/mig-1g.5gb"] = draw.Of({"1", "2"});
  if (draw.Chance(0.04) && requests.contains("cpu")) {
    limits["hugepages-2Mi"] = "128Mi";
    requests["hugepages-2Mi"] = "128Mi";
  }
  JsonObject resources;
  if (!requests.empty()) resources["requests"] = std::move(requests);
  if (!limits.empty()) resources["limits"] = std::move(limits);
  return resources;
}

JsonArray MakePorts(Draw& draw) {
  const int port = draw.Between(8080, 8082);
  JsonObject taken{{"containerPort", port}, {"hostPort", port}};
  if (draw.Chance(0.5)) taken["hostIP"] = draw.Of({"0.0.0.0", "127.0.0.1", "10.0.0.1"});
  if (draw.Chance(0.4)) taken["protocol"] = draw.Of({"UDP", "TCP", "SCTP"});
  return {std::move(taken)};
}

JsonObject MakeContainer(Draw& draw, std::string name, bool small) {
  return {{"name", std::move(name)},
          {"image", draw.Of({"registry.example/app:1", "registry.example/app:2",
                             "registry.example/tool", "registry.example/model:v3", "other/any"})},
          {"resources", MakeResources(draw, small)}};
}

void AddController(Draw& draw, JsonObject& metadata) {
  if (!draw.Chance(0.15)) return;
  const std::string kind = draw.Of({"ReplicaSet", "StatefulSet"});
  metadata["ownerReferences"] =
      JsonArray{JsonObject{{"apiVersion", "apps/v1"},
                           {"kind", kind},
                           {"name", draw.Of({"set-a", "set-b"})},
                           {"uid", "00000000-0000-0000-0000-000000000001"},
                           {"controller", true}}};
}

}  // namespace

JsonObject MakeContainers(Draw& draw, bool small) {
  JsonObject spec;
  JsonArray containers{MakeContainer(draw, "main", small)};
  if (draw.Chance(0.2)) containers.emplace_back(MakeContainer(draw, "second", small));
  if (draw.Chance(0.15)) containers[0].get_object()["ports"] = MakePorts(draw);
  spec["containers"] = std::move(containers);
  JsonArray first;
  if (draw.Chance(0.12)) first.emplace_back(MakeContainer(draw, "init", small));
  if (draw.Chance(0.1)) {
    JsonObject sidecar = MakeContainer(draw, "sidecar", small);
    sidecar["restartPolicy"] = "Always";
    if (draw.Chance(0.2)) sidecar["ports"] = MakePorts(draw);
    first.emplace_back(std::move(sidecar));
  }
  if (draw.Chance(0.08)) first.emplace_back(MakeContainer(draw, "init-2", small));
  if (!first.empty()) spec["initContainers"] = std::move(first);
  if (draw.Chance(0.08)) spec["runtimeClassName"] = draw.Of({"heavy", "picky"});
  return spec;
}

namespace {

// Pod-level resources must cover those of the containers, so these containers request little.
void MakePodLevel(Draw& draw, JsonObject& spec) {
  const JsonObject little{{"requests", JsonObject{{"cpu", "50m"}, {"memory", "16Mi"}}}};
  for (Json& container : spec["containers"].get_array()) {
    container.get_object()["resources"] = little;
  }
  spec.erase("initContainers");
  JsonObject requests;
  if (draw.Chance(0.8)) requests["cpu"] = draw.Of({"500m", "1", "2"});
  if (requests.empty() || draw.Chance(0.7)) requests["memory"] = draw.Of({"256Mi", "2Gi"});
  spec["resources"] = JsonObject{{"requests", std::move(requests)}};
}

}  // namespace

std::string StartTime(int minutes) {
  return fmt::format("2026-01-{:02}T{:02}:{:02}:00Z", 1 + minutes / 1440, minutes / 60 % 24,
                     minutes % 60);
}

namespace {

// Resources allocated by the node to containers, which differ from their requests.
JsonArray MakeAllocations(Draw& draw, const JsonArray& containers) {
  JsonArray statuses;
  for (const Json& container : containers) {
    JsonObject status{{"name", FindString(container, "name")},
                      {"image", "any"},
                      {"imageID", "any"},
                      {"ready", true},
                      {"restartCount", 0}};
    const auto amounts = [&] {
      JsonObject some;
      // For other resources a kubelet reports the requested amount.
      if (const Json* limits = nos::Find(container, "resources", "limits")) {
        for (const auto& [name, amount] : limits->get_object()) some[name] = amount;
      }
      if (draw.Chance(0.9)) some["cpu"] = draw.Of({"10m", "250m", "1", "1500m"});
      if (draw.Chance(0.7)) some["memory"] = draw.Of({"16Mi", "300M", "2Gi"});
      return some;
    };
    if (draw.Chance(0.9)) status["resources"] = JsonObject{{"requests", amounts()}};
    if (draw.Chance(0.7)) status["allocatedResources"] = amounts();
    statuses.emplace_back(std::move(status));
  }
  return statuses;
}

void Resize(Draw& draw, const JsonObject& spec, JsonObject& status) {
  status["containerStatuses"] = MakeAllocations(draw, spec.at("containers").get_array());
  if (const Json* first = spec.if_contains("initContainers")) {
    status["initContainerStatuses"] = MakeAllocations(draw, first->get_array());
  }
  if (!draw.Chance(0.6)) return;
  status["conditions"] = JsonArray{JsonObject{{"type", "PodResizePending"},
                                              {"status", "True"},
                                              {"reason", draw.Of({"Deferred", "Infeasible"})}}};
}

JsonObject MakeRunningPod(Draw& draw, const ClusterObjects& cluster, int index) {
  JsonObject spec = MakeContainers(draw, draw.Chance(0.6));
  spec.erase("runtimeClassName");
  AddPodAffinity(draw, spec);
  spec["nodeName"] =
      FindString(cluster.nodes[draw.Between(0, static_cast<int>(cluster.nodes.size()) - 1)],
                 "metadata", "name");
  spec["terminationGracePeriodSeconds"] = 0;
  spec["priorityClassName"] = draw.Of({"low", "low", "low", "mid", "mid", "high"});
  JsonObject metadata{{"name", fmt::format("{}-r{}", cluster.name, index)},
                      {"namespace", draw.Of(kNamespaceNames)},
                      {"labels", MakePodLabels(draw)}};
  AddController(draw, metadata);
  JsonObject status{{"phase", draw.Chance(0.05) ? "Succeeded" : "Running"}};
  status["startTime"] = StartTime(draw.Between(0, 9) * 100 + index);
  if (draw.Chance(0.15)) Resize(draw, spec, status);
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)},
          {"status", std::move(status)}};
}

// A pending pod with a nominated node; its scheduling gate keeps it from being decided. It has no
// anti-affinity, because kube-scheduler overlooks that of nominated pods if no other pod has any:
// docs/scheduler-differences.md.
JsonObject MakePromisedPod(Draw& draw, const ClusterObjects& cluster, int index) {
  JsonObject pod = MakeRunningPod(draw, cluster, index);
  JsonObject& spec = pod["spec"].get_object();
  pod["status"] = JsonObject{{"nominatedNodeName", spec["nodeName"]}};
  spec.erase("nodeName");
  if (Json* affinity = spec.if_contains("affinity")) {
    affinity->get_object().erase("podAntiAffinity");
  }
  spec["schedulerName"] = kProfile;
  spec["schedulingGates"] = JsonArray{JsonObject{{"name", "example.com/promised"}}};
  return pod;
}

Json MakeBudget(Draw& draw, const std::string& cluster, int index) {
  JsonObject status{{"disruptionsAllowed", draw.Between(0, 1)},
                    {"currentHealthy", 3},
                    {"desiredHealthy", 2},
                    {"expectedPods", 3},
                    {"observedGeneration", 1}};
  return JsonObject{
      {"apiVersion", "policy/v1"},
      {"kind", "PodDisruptionBudget"},
      {"metadata", JsonObject{{"name", fmt::format("{}-b{}", cluster, index)},
                              {"namespace", draw.Of(kNamespaceNames)}}},
      {"spec", JsonObject{{"minAvailable", 1}, {"selector", MakeLabelSelector(draw)}}},
      {"status", std::move(status)}};
}

Json MakeService(Draw& draw, const std::string& ns) {
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", JsonObject{{"name", "service"}, {"namespace", ns}}},
      {"spec", JsonObject{{"clusterIP", "None"},
                          {"ports", JsonArray{JsonObject{{"port", 80}}}},
                          {"selector", JsonObject{{"app", draw.Of({"a", "b", "c"})}}}}}};
}

Json MakeSet(Draw& draw, const std::string& kind, const std::string& name, const std::string& ns) {
  const JsonObject labels{{"app", draw.Of({"a", "b"})}};
  JsonObject pod_spec{
      {"containers", JsonArray{JsonObject{{"name", "main"}, {"image", "other/any"}}}}};
  JsonObject spec{{"replicas", 0},
                  {"selector", JsonObject{{"matchLabels", labels}}},
                  {"template", JsonObject{{"metadata", JsonObject{{"labels", labels}}},
                                          {"spec", std::move(pod_spec)}}}};
  if (kind == "StatefulSet") spec["serviceName"] = "service";
  return JsonObject{{"apiVersion", "apps/v1"},
                    {"kind", kind},
                    {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
                    {"spec", std::move(spec)}};
}

void AddSelectors(Draw& draw, ClusterObjects& cluster) {
  for (const std::string& ns : kNamespaceNames) {
    if (draw.Chance(0.5)) cluster.context.push_back(MakeService(draw, ns));
    for (const std::string kind : {"ReplicaSet", "StatefulSet"}) {
      if (draw.Chance(0.5)) cluster.context.push_back(MakeSet(draw, kind, "set-a", ns));
      if (draw.Chance(0.3)) cluster.context.push_back(MakeSet(draw, kind, "set-b", ns));
    }
  }
}

}  // namespace

ClusterObjects MakeCluster(Draw& draw, const std::string& name) {
  ClusterObjects cluster;
  cluster.name = name;
  for (int i = 0, count = draw.Between(3, 12); i < count; ++i) {
    cluster.nodes.push_back(MakeNode(draw, name, i));
  }
  AddSelectors(draw, cluster);
  for (int i = 0, count = draw.Between(0, 3); i < count; ++i) {
    cluster.context.push_back(MakeBudget(draw, name, i));
  }
  if (draw.Chance(0.4)) AddClusterVolumes(draw, cluster);
  for (int i = 0, count = draw.Between(0, 24); i < count; ++i) {
    cluster.pods.emplace_back(MakeRunningPod(draw, cluster, i));
  }
  for (int i = 0, count = draw.Chance(0.4) ? draw.Between(1, 4) : 0; i < count; ++i) {
    cluster.pods.emplace_back(MakePromisedPod(draw, cluster, 100 + i));
    cluster.promises = true;
  }
  return cluster;
}

PodObjects MakePod(Draw& draw, const ClusterObjects& cluster, const std::string& name) {
  PodObjects objects;
  JsonObject spec = MakeContainers(draw, draw.Chance(0.5));
  const std::string ns = draw.Of(kNamespaceNames);
  spec["schedulerName"] = draw.Chance(0.5) ? kProfile : draw.Of(kOtherProfiles);
  spec["terminationGracePeriodSeconds"] = 0;
  if (draw.Chance(0.07)) MakePodLevel(draw, spec);
  if (draw.Chance(0.3)) spec["tolerations"] = MakeTolerations(draw);
  AddNodeAffinity(draw, cluster, spec);
  AddPodAffinity(draw, spec);
  AddSpread(draw, cluster, spec);
  if (draw.Chance(0.5))
    spec["priorityClassName"] = draw.Of({"low", "mid", "high", "high", "polite"});
  if (draw.Chance(0.05)) {
    spec["schedulingGates"] = JsonArray{JsonObject{{"name", "example.com/wait"}}};
    objects.gated = true;
  }
  JsonObject metadata{{"name", name}, {"namespace", ns}, {"labels", MakePodLabels(draw)}};
  AddController(draw, metadata);
  objects.pod = JsonObject{{"apiVersion", "v1"},
                           {"kind", "Pod"},
                           {"metadata", std::move(metadata)},
                           {"spec", std::move(spec)}};
  if (cluster.volumes && draw.Chance(0.4)) AddPodVolumes(draw, cluster, name, ns, objects);
  return objects;
}

Json MakeSentinel(const std::string& name, JsonObject node_labels) {
  JsonObject resources{{"limits", JsonObject{{"example.com/nothing", "1"}}}};
  JsonObject container{
      {"name", "main"}, {"image", "other/any"}, {"resources", std::move(resources)}};
  JsonObject spec{{"schedulerName", kProfile},
                  {"priorityClassName", "polite"},
                  {"terminationGracePeriodSeconds", 0},
                  {"nodeSelector", std::move(node_labels)},
                  {"tolerations", JsonArray{JsonObject{{"operator", "Exists"}}}},
                  {"containers", JsonArray{std::move(container)}}};
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", JsonObject{{"name", name}, {"namespace", "red"}}},
                    {"spec", std::move(spec)}};
}

void EndResizes(ClusterObjects& cluster) {
  for (Json& pod : cluster.pods) {
    Json* status = pod.get_object().if_contains("status");
    if (status == nullptr || !status->get_object().contains("containerStatuses")) continue;
    for (const char* field : {"containerStatuses", "initContainerStatuses", "conditions"}) {
      status->get_object().erase(field);
    }
  }
}

}  // namespace nos::differential
