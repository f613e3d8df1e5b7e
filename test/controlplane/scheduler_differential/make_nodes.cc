#include <fmt/core.h>

#include "scheduler_differential/generate.h"

namespace nos::differential {
namespace {

JsonObject MakeAllocatable(Draw& draw) {
  JsonObject amounts{{"cpu", draw.Of({"1", "2", "4", "3900m", "8"})},
                     {"memory", draw.Of({"2Gi", "4Gi", "7500Mi", "16Gi"})},
                     {"pods", draw.Of({"3", "6", "12", "110"})}};
  if (draw.Chance(0.6)) amounts["ephemeral-storage"] = draw.Of({"2Gi", "10Gi"});
  if (draw.Chance(0.5)) amounts["example.com/widget"] = draw.Of({"0", "1", "2", "4"});
  if (draw.Chance(0.3)) amounts["nvidia.com/gpu"] = draw.Of({"1", "2", "8"});
  if (draw.Chance(0.3)) amounts["nvidia.com/mig-1g.5gb"] = draw.Of({"1", "3", "7"});
  if (draw.Chance(0.2)) amounts["hugepages-2Mi"] = draw.Of({"0", "256Mi", "1Gi"});
  return amounts;
}

JsonArray MakeTaints(Draw& draw) {
  JsonArray taints;
  const auto add = [&](const char* key, double probability) {
    if (!draw.Chance(probability)) return;
    JsonObject taint{{"key", key},
                     {"effect", draw.Of({"NoSchedule", "PreferNoSchedule", "NoExecute"})}};
    if (draw.Chance(0.7)) taint["value"] = draw.Of({"blue", "red"});
    taints.emplace_back(std::move(taint));
  };
  add("dedicated", 0.25);
  add("flaky", 0.2);
  add("maintenance", 0.08);
  return taints;
}

JsonArray MakeImages(Draw& draw) {
  JsonArray images;
  const auto add = [&](const char* name, int64_t bytes) {
    if (!draw.Chance(0.4)) return;
    images.emplace_back(JsonObject{{"names", JsonArray{Json(name)}}, {"sizeBytes", bytes}});
  };
  add("registry.example/app:1", 900'000'000);
  add("registry.example/app:2", 1'300'000'000);
  add("registry.example/tool:latest", 40'000'000);
  add("registry.example/model:v3", 2'500'000'000);
  return images;
}

}  // namespace

Json MakeNode(Draw& draw, const std::string& cluster, int index) {
  const std::string name = fmt::format("{}-n{}", cluster, index);
  JsonObject labels{{kClusterLabel, cluster}, {"disk", draw.Of({"ssd", "hdd"})}};
  if (draw.Chance(0.95)) labels["kubernetes.io/hostname"] = name;
  if (draw.Chance(0.92)) labels["topology.kubernetes.io/zone"] = draw.Of({"z1", "z2", "z3"});
  if (draw.Chance(0.9)) labels["topology.kubernetes.io/region"] = "r1";
  if (draw.Chance(0.5)) labels["rack"] = draw.Of({"a", "b"});
  if (draw.Chance(0.7)) labels["cores"] = draw.Of({"4", "8", "16", "many"});
  JsonObject spec;
  if (JsonArray taints = MakeTaints(draw); !taints.empty()) spec["taints"] = std::move(taints);
  if (draw.Chance(0.08)) spec["unschedulable"] = true;
  const JsonObject amounts = MakeAllocatable(draw);
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata", JsonObject{{"name", name}, {"labels", std::move(labels)}}},
      {"spec", std::move(spec)},
      {"status",
       JsonObject{{"capacity", amounts}, {"allocatable", amounts}, {"images", MakeImages(draw)}}}};
}

Json MakeNodeChange(Draw& draw, const std::string& mark) {
  JsonObject labels{{kChangeLabel, mark}}, spec;
  switch (draw.Between(0, 3)) {
    case 0:
      spec["unschedulable"] = draw.Chance(0.5);
      break;
    case 1:
      labels["disk"] = draw.Of({"ssd", "hdd"});
      break;
    case 2:
      labels["topology.kubernetes.io/zone"] = draw.Of({"z1", "z2"});
      break;
    default:
      spec["taints"] = MakeTaints(draw);
      break;
  }
  return JsonObject{{"metadata", JsonObject{{"labels", std::move(labels)}}},
                    {"spec", std::move(spec)}};
}

}  // namespace nos::differential
