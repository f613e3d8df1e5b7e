// ResourceClaims, and pods that use them.
#include <fmt/core.h>

#include <algorithm>

#include "scheduler_differential/generate.h"

namespace nos::differential {
namespace {

constexpr const char* kVersion = "resource.k8s.io/v1";

JsonArray MakeSelectors(Draw& draw, const ClusterObjects& cluster) {
  JsonArray selectors;
  const auto add = [&](const std::string& expression) {
    selectors.emplace_back(JsonObject{{"cel", JsonObject{{"expression", expression}}}});
  };
  if (draw.Chance(0.5)) {
    add(draw.Of({
        "device.driver == 'plain.example.com'",
        "device.attributes['plain.example.com'].?model.orValue('') == 'a'",
        "'numa' in device.attributes['plain.example.com'] && "
        "device.attributes['plain.example.com'].numa > 0",
        "device.attributes['plain.example.com'].?fast.orValue(false)",
        "device.attributes['plain.example.com'].?firmware.orValue(semver('1.0.0'))"
        ".isGreaterThan(semver('1.2.0-rc.1'))",
        "device.capacity[device.driver].?memory.orValue(quantity('1Gi'))"
        ".isGreaterThan(quantity('1536M'))",
        "device.capacity[device.driver].?lanes.orValue(quantity('1')).compareTo(quantity('4')) < 0",
        "device.attributes['resource.kubernetes.io'].?pcieRoot.orValue('').endsWith('00')",
        "'model' in device.attributes[device.driver] && "
        "device.attributes[device.driver].model.matches('^[ab]$')",
        "['a', 'c'].exists(m, m == device.attributes[device.driver].?model.orValue(''))",
    }));
  }
  if (cluster.faulty && draw.Chance(0.4)) {
    add(draw.Of({"device.attributes['plain.example.com'].numa == 1",
                 "device.attributes['plain.example.com'].fast",
                 "device.capacity['plain.example.com'].memory.isGreaterThan(quantity('9Gi'))",
                 "device.attributes['plain.example.com'].model > 3",
                 "device.attributes['other.example.com'].model == 'a'"}));
  }
  return selectors;
}

// The other half of the requests for GPUs asks for a profile.
void AddProfile(Draw& draw, JsonObject& request) {
  const std::string expression =
      fmt::format("device.attributes['gpu.nvidia.com'].?profile.orValue('') == '{}'",
                  draw.Of({"1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"}));
  request["selectors"] = JsonArray{JsonObject{{"cel", JsonObject{{"expression", expression}}}}};
}

JsonArray MakeDeviceTolerations(Draw& draw) {
  JsonObject toleration{{"operator", draw.Of({"Exists", "Equal"})}};
  if (FindString(Json(toleration), "operator") == "Equal") {
    toleration["value"] = draw.Of({"yes", "no"});
    toleration["key"] = draw.Of({"broken", "example.com/reserved"});
  } else if (draw.Chance(0.6)) {
    toleration["key"] = draw.Of({"broken", "example.com/reserved"});
  }
  if (draw.Chance(0.3)) toleration["effect"] = draw.Of({"NoSchedule", "NoExecute"});
  return {std::move(toleration)};
}

// `exactly` of a request, or an alternative without its name.
JsonObject MakeRequest(Draw& draw, const ClusterObjects& cluster, int most) {
  std::string device_class = draw.Of(cluster.classes);
  if (draw.Chance(0.02)) device_class = cluster.name + "-missing";
  JsonObject request{{"deviceClassName", device_class}};
  if (JsonArray selectors = MakeSelectors(draw, cluster); !selectors.empty()) {
    request["selectors"] = std::move(selectors);
  }
  if (device_class.ends_with("-mig") && draw.Chance(0.8)) AddProfile(draw, request);
  if (draw.Chance(0.1)) {
    request["allocationMode"] = "All";
  } else {
    request["allocationMode"] = "ExactCount";
    request["count"] = draw.Chance(0.75) ? 1 : draw.Between(1, most);
  }
  if (draw.Chance(0.2)) request["tolerations"] = MakeDeviceTolerations(draw);
  if (cluster.devices.shares() && draw.Chance(0.25)) {
    request["capacity"] = JsonObject{
        {"requests",
         JsonObject{{"memory", draw.Of({"1Gi", "2Gi", "2500Mi", "3Gi", "7Gi", "20Gi"})}}}};
  }
  return request;
}

JsonObject MakeConstraint(Draw& draw, const ClusterObjects& cluster, size_t requests) {
  const bool distinct = cluster.devices.shares() && draw.Chance(0.4);
  JsonObject constraint{
      {distinct ? "distinctAttribute" : "matchAttribute",
       draw.Of({"plain.example.com/model", "plain.example.com/numa", "gpu.nvidia.com/parentUUID",
                "resource.kubernetes.io/pcieRoot", "plain.example.com/firmware"})}};
  if (draw.Chance(0.4)) {
    constraint["requests"] =
        JsonArray{Json(fmt::format("r{}", draw.Between(0, static_cast<int>(requests) - 1)))};
  }
  return constraint;
}

Json MakeClaim(const std::string& ns, const std::string& name, JsonObject spec) {
  return JsonObject{{"apiVersion", kVersion},
                    {"kind", "ResourceClaim"},
                    {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
                    {"spec", std::move(spec)}};
}

// A device of a node, for a claim that has it; each device is taken once. Null: none is left.
const Json* TakeDevice(Draw& draw, const ClusterObjects& cluster, std::set<std::string>& taken,
                       const Json*& slice) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    slice = &cluster.context[draw.Between(0, static_cast<int>(cluster.context.size()) - 1)];
    const Json* devices = Find(*slice, "spec", "devices");
    const bool here = !FindString(*slice, "spec", "nodeName").empty();
    if (!here || devices == nullptr || devices->get_array().empty()) continue;
    // The slices that share counters count as one device.
    const bool counters = Find(devices->get_array()[0], "consumesCounters") != nullptr;
    const std::string place = counters ? std::string(FindString(*slice, "spec", "pool", "name"))
                                       : std::string(FindString(*slice, "metadata", "name"));
    if (!taken.insert(place).second) continue;
    const JsonArray& list = devices->get_array();
    return &list[draw.Between(0, static_cast<int>(list.size()) - 1)];
  }
  return nullptr;
}

// A claim with an allocation and without users.
void AddAllocated(Draw& draw, ClusterObjects& cluster, const std::string& ns,
                  std::set<std::string>& taken) {
  const Json* slice = nullptr;
  const Json* device = TakeDevice(draw, cluster, taken, slice);
  if (device == nullptr || Find(*device, "allowMultipleAllocations") != nullptr) return;
  JsonObject request{{"name", "r0"},
                     {"exactly", JsonObject{{"deviceClassName", cluster.classes.front()},
                                            {"allocationMode", "ExactCount"},
                                            {"count", 1}}}};
  Json claim = MakeClaim(ns, cluster.name + "-taken",
                         {{"devices", JsonObject{{"requests", JsonArray{std::move(request)}}}}});
  JsonObject result{{"request", "r0"},
                    {"driver", FindString(*slice, "spec", "driver")},
                    {"pool", FindString(*slice, "spec", "pool", "name")},
                    {"device", FindString(*device, "name")}};
  JsonObject field{{"key", "metadata.name"},
                   {"operator", "In"},
                   {"values", JsonArray{Json(FindString(*slice, "spec", "nodeName"))}}};
  JsonObject term{{"matchFields", JsonArray{std::move(field)}}};
  claim.get_object()["metadata"].get_object()["finalizers"] =
      JsonArray{Json("resource.kubernetes.io/delete-protection")};
  JsonObject allocation{
      {"devices", JsonObject{{"results", JsonArray{std::move(result)}}}},
      {"nodeSelector", JsonObject{{"nodeSelectorTerms", JsonArray{std::move(term)}}}}};
  // Without it kube-scheduler cannot add a user: it adds the time, which the API server refuses.
  if (cluster.devices.minor >= 36) allocation["allocationTimestamp"] = StartTime(0);
  claim.get_object()["status"] = JsonObject{{"allocation", std::move(allocation)}};
  cluster.device_claims.push_back(std::move(claim));
}

}  // namespace

JsonObject MakeClaimSpec(Draw& draw, const ClusterObjects& cluster, bool admin) {
  JsonArray requests, constraints;
  const int count = draw.Chance(0.7) ? 1 : 2;
  for (int i = 0; i < count; ++i) {
    JsonObject request{{"name", fmt::format("r{}", i)}};
    if (draw.Chance(0.75)) {
      JsonObject exactly = MakeRequest(draw, cluster, count == 1 ? 3 : 2);
      if (admin && draw.Chance(0.6)) exactly["adminAccess"] = true;
      request["exactly"] = std::move(exactly);
    } else {
      JsonArray alternatives;
      for (int n = 0, most = draw.Between(1, 3); n < most; ++n) {
        JsonObject alternative = MakeRequest(draw, cluster, 2);
        // Seldom where kube-scheduler gives it some devices only.
        const bool rare = n > 0 && cluster.devices.minor < 36;
        if (rare && alternative["allocationMode"] == "All" && draw.Chance(0.8)) {
          alternative["allocationMode"] = "ExactCount";
          alternative["count"] = 1;
        }
        alternative["name"] = fmt::format("a{}", n);
        alternatives.emplace_back(std::move(alternative));
      }
      request["firstAvailable"] = std::move(alternatives);
    }
    requests.emplace_back(std::move(request));
  }
  if (draw.Chance(0.25)) constraints.emplace_back(MakeConstraint(draw, cluster, requests.size()));
  JsonObject devices{{"requests", std::move(requests)}};
  if (!constraints.empty()) devices["constraints"] = std::move(constraints);
  return {{"devices", std::move(devices)}};
}

void AddClusterClaims(Draw& draw, ClusterObjects& cluster) {
  std::set<std::string> taken;
  for (const std::string& ns : kNamespaceNames) {
    const bool admin = ns == "blue";
    cluster.context.emplace_back(JsonObject{
        {"apiVersion", kVersion},
        {"kind", "ResourceClaimTemplate"},
        {"metadata", JsonObject{{"name", cluster.name + "-template"}, {"namespace", ns}}},
        {"spec", JsonObject{{"spec", MakeClaimSpec(draw, cluster, admin)}}}});
    cluster.device_claims.push_back(
        MakeClaim(ns, cluster.name + "-shared", MakeClaimSpec(draw, cluster, admin)));
    if (draw.Chance(0.6)) AddAllocated(draw, cluster, ns, taken);
  }
}

PodObjects MakeClaimingPod(Draw& draw, const ClusterObjects& cluster, const std::string& name) {
  PodObjects objects;
  const std::string ns = draw.Of({"red", "red", "green", "blue"});
  JsonArray claims, used;
  JsonObject resources{{"requests", JsonObject{{"cpu", draw.Of({"50m", "100m"})}}}};
  const auto use = [&](const char* kind, const char* field, const std::string& claim) {
    const std::string entry = fmt::format("e{}", claims.size());
    objects.kinds.insert(kind);
    used.emplace_back(JsonObject{{"name", entry}});
    claims.emplace_back(JsonObject{{"name", entry}, {field, claim}});
  };
  const auto add = [&] {
    int kind = draw.Between(0, 99);
    // kube-scheduler takes a claim that a pod names twice for two claims.
    if (kind >= 72 && !claims.empty()) kind = 0;
    if (kind < 50) {
      const std::string claim = fmt::format("{}-{}", name, claims.size());
      objects.claims.push_back(MakeClaim(ns, claim, MakeClaimSpec(draw, cluster, ns == "blue")));
      use("named", "resourceClaimName", claim);
    } else if (kind < 72) {
      use("template", "resourceClaimTemplateName", cluster.name + "-template");
    } else if (kind < 85) {
      use("shared", "resourceClaimName", cluster.name + "-shared");
    } else if (kind < 97) {
      // It is missing if the cluster has none.
      const bool there = std::ranges::any_of(cluster.device_claims, [&](const Json& claim) {
        return FindString(claim, "metadata", "namespace") == ns &&
               FindString(claim, "metadata", "name") == cluster.name + "-taken";
      });
      objects.held = objects.held || !there;
      use(there ? "allocated" : "missing", "resourceClaimName", cluster.name + "-taken");
    } else {
      objects.held = true;
      use("missing", "resourceClaimName", "nowhere");
    }
  };
  if (!cluster.served.empty() && draw.Chance(0.2)) {
    objects.kinds.insert("extended");
    resources["limits"] = JsonObject{{draw.Of(cluster.served), draw.Of({"1", "1", "2"})}};
  } else {
    add();
    if (draw.Chance(0.25)) add();
  }
  JsonObject spec{{"schedulerName", kProfile},
                  {"priorityClassName", "polite"},
                  {"terminationGracePeriodSeconds", 0}};
  if (!claims.empty()) {
    resources["claims"] = std::move(used);
    spec["resourceClaims"] = std::move(claims);
  }
  spec["schedulingGates"] = JsonArray{JsonObject{{"name", "example.com/wait"}}};
  objects.gated = true;
  spec["containers"] = JsonArray{
      JsonObject{{"name", "main"}, {"image", "other/any"}, {"resources", std::move(resources)}}};
  if (draw.Chance(0.25)) spec["tolerations"] = MakeTolerations(draw);
  if (draw.Chance(0.15)) spec["nodeSelector"] = JsonObject{{"disk", draw.Of({"ssd", "hdd"})}};
  objects.pod = JsonObject{{"apiVersion", "v1"},
                           {"kind", "Pod"},
                           {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
                           {"spec", std::move(spec)}};
  return objects;
}

}  // namespace nos::differential
