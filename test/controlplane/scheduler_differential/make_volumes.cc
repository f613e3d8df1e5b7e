#include <fmt/core.h>

#include "scheduler_differential/generate.h"

namespace nos::differential {
namespace {

constexpr const char* kDriver = "csi.example.com";

JsonObject Selecting(const std::string& key, JsonArray values) {
  JsonObject expression{{"key", key}, {"operator", "In"}, {"values", std::move(values)}};
  JsonObject term{{"matchExpressions", JsonArray{std::move(expression)}}};
  return {{"required", JsonObject{{"nodeSelectorTerms", JsonArray{std::move(term)}}}}};
}

JsonObject MakeVolume(Draw& draw, const ClusterObjects& cluster, const std::string& name) {
  JsonObject spec{
      {"capacity", JsonObject{{"storage", draw.Of({"1Gi", "2Gi", "5Gi", "10Gi"})}}},
      {"accessModes", JsonArray{Json(draw.Chance(0.8) ? "ReadWriteOnce" : "ReadWriteOncePod")}},
      {"persistentVolumeReclaimPolicy", "Retain"},
      {"storageClassName", "manual"}};
  if (draw.Chance(0.7)) {
    spec["csi"] = JsonObject{{"driver", kDriver}, {"volumeHandle", name}};
  } else {
    spec["hostPath"] = JsonObject{{"path", "/data/" + name}};
  }
  JsonObject labels{{"kind", draw.Of({"fast", "slow"})}};
  if (draw.Chance(0.5)) {
    spec["nodeAffinity"] = Selecting("topology.kubernetes.io/zone", draw.Few({"z1", "z2", "z3"}));
  } else if (draw.Chance(0.4)) {
    const Json& node = cluster.nodes[draw.Between(0, static_cast<int>(cluster.nodes.size()) - 1)];
    spec["nodeAffinity"] =
        Selecting("kubernetes.io/hostname", JsonArray{Json(FindString(node, "metadata", "name"))});
  }
  if (draw.Chance(0.25)) {
    labels["topology.kubernetes.io/zone"] = draw.Of({"z1", "z2", "z1__z2"});
  }
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"metadata", JsonObject{{"name", name}, {"labels", std::move(labels)}}},
          {"spec", std::move(spec)}};
}

JsonObject MakeClaim(Draw& draw, const std::string& ns, const std::string& name,
                     const std::string& storage_class) {
  JsonObject spec{
      {"accessModes", JsonArray{Json(draw.Chance(0.8) ? "ReadWriteOnce" : "ReadWriteOncePod")}},
      {"storageClassName", storage_class},
      {"resources",
       JsonObject{{"requests", JsonObject{{"storage", draw.Of({"1Gi", "2Gi", "4Gi"})}}}}}};
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
          {"spec", std::move(spec)}};
}

// A volume and the claim that is bound to it.
void AddBound(Draw& draw, ClusterObjects& cluster, const std::string& ns, const std::string& name) {
  JsonObject volume = MakeVolume(draw, cluster, name);
  volume["spec"].get_object()["claimRef"] =
      JsonObject{{"kind", "PersistentVolumeClaim"}, {"namespace", ns}, {"name", name}};
  JsonObject claim = MakeClaim(draw, ns, name, "manual");
  claim["spec"].get_object()["volumeName"] = name;
  volume["spec"].get_object()["accessModes"] = claim["spec"].get_object()["accessModes"];
  claim["spec"].get_object()["resources"] =
      JsonObject{{"requests", JsonObject{{"storage", "1Gi"}}}};
  const bool lost = draw.Chance(0.1);  // the claim has lost its volume
  if (lost) {
    claim["metadata"].get_object()["annotations"] =
        JsonObject{{"pv.kubernetes.io/bind-completed", "yes"}};
  }
  cluster.claims.emplace_back(std::move(claim));
  if (!lost) cluster.context.emplace_back(std::move(volume));
}

JsonObject FromClaim(const std::string& volume, const std::string& claim) {
  return {{"name", volume}, {"persistentVolumeClaim", JsonObject{{"claimName", claim}}}};
}

JsonObject MakeDisk(Draw& draw) {
  JsonObject volume{{"name", "disk"}};
  if (draw.Chance(0.5)) {
    volume["gcePersistentDisk"] =
        JsonObject{{"pdName", draw.Of({"disk-1", "disk-2"})}, {"readOnly", draw.Chance(0.3)}};
  } else {
    volume["iscsi"] =
        JsonObject{{"targetPortal", "10.0.0.1:3260"},
                   {"iqn", draw.Of({"iqn.2026-01.example:a", "iqn.2026-01.example:b"})},
                   {"lun", 0},
                   {"readOnly", draw.Chance(0.3)}};
  }
  return volume;
}

}  // namespace

void AddClusterVolumes(Draw& draw, ClusterObjects& cluster) {
  cluster.volumes = true;
  for (const Json& node : cluster.nodes) {
    if (!draw.Chance(0.7)) continue;
    const std::string name(FindString(node, "metadata", "name"));
    JsonObject driver{{"name", kDriver},
                      {"nodeID", name},
                      {"topologyKeys", JsonArray{Json("topology.kubernetes.io/zone")}}};
    if (draw.Chance(0.8)) driver["allocatable"] = JsonObject{{"count", draw.Between(1, 3)}};
    cluster.context.emplace_back(
        JsonObject{{"apiVersion", "storage.k8s.io/v1"},
                   {"kind", "CSINode"},
                   {"metadata", JsonObject{{"name", name}}},
                   {"spec", JsonObject{{"drivers", JsonArray{std::move(driver)}}}}});
  }
  for (int i = 0, count = draw.Between(1, 6); i < count; ++i) {
    cluster.context.emplace_back(MakeVolume(draw, cluster, fmt::format("{}-v{}", cluster.name, i)));
  }
  for (const std::string& ns : kNamespaceNames) {
    for (int i = 0; i < 2; ++i) {
      if (draw.Chance(0.8))
        AddBound(draw, cluster, ns, fmt::format("{}-{}-{}", cluster.name, ns, i));
    }
  }
}

void AddPodVolumes(Draw& draw, const ClusterObjects& cluster, const std::string& name,
                   const std::string& ns, PodObjects& objects) {
  JsonArray volumes;
  if (draw.Chance(0.4)) {
    volumes.emplace_back(
        FromClaim("bound", fmt::format("{}-{}-{}", cluster.name, ns, draw.Between(0, 1))));
  }
  if (draw.Chance(0.4)) {
    objects.claims.emplace_back(MakeClaim(draw, ns, name + "-manual", "manual"));
    if (draw.Chance(0.3)) {
      objects.claims.back().get_object()["spec"].get_object()["selector"] =
          JsonObject{{"matchLabels", JsonObject{{"kind", draw.Of({"fast", "slow"})}}}};
    }
    volumes.emplace_back(FromClaim("manual", name + "-manual"));
  }
  if (draw.Chance(0.2)) {
    const std::string storage_class = draw.Of({"made", "zonal"});
    objects.claims.emplace_back(MakeClaim(draw, ns, name + "-made", storage_class));
    volumes.emplace_back(FromClaim("made", name + "-made"));
  }
  if (draw.Chance(0.08)) {
    objects.claims.emplace_back(MakeClaim(draw, ns, name + "-now", "immediate"));
    volumes.emplace_back(FromClaim("now", name + "-now"));
  }
  if (draw.Chance(0.05)) volumes.emplace_back(FromClaim("missing", "missing"));
  if (draw.Chance(0.25)) volumes.emplace_back(MakeDisk(draw));
  objects.pod.get_object()["spec"].get_object()["volumes"] = std::move(volumes);
}

}  // namespace nos::differential
