#include "scheduler_differential/generate.h"

namespace nos::differential {
namespace {

const std::vector<std::string> kApps{"a", "b", "c"}, kTiers{"x", "y"};

JsonObject Requirement(std::string key, std::string op, JsonArray values = {}) {
  JsonObject requirement{{"key", std::move(key)}, {"operator", std::move(op)}};
  if (!values.empty()) requirement["values"] = std::move(values);
  return requirement;
}

JsonObject NodeRequirement(Draw& draw) {
  switch (draw.Between(0, 6)) {
    case 0:
      return Requirement("disk", draw.Of({"In", "NotIn"}), draw.Few({"ssd", "hdd"}));
    case 1:
      return Requirement("topology.kubernetes.io/zone", "In", draw.Few({"z1", "z2", "z3"}));
    case 2:
      return Requirement("topology.kubernetes.io/zone", "NotIn", draw.Few({"z1", "z2"}));
    case 3:
      return Requirement("rack", draw.Of({"Exists", "DoesNotExist"}));
    case 4:
      return Requirement("cores", "Gt", JsonArray{Json(draw.Of({"3", "7", "15"}))});
    case 5:
      return Requirement("cores", "Lt", JsonArray{Json(draw.Of({"5", "9", "20"}))});
    default:
      return Requirement("rack", draw.Of({"In", "NotIn"}), draw.Few({"a", "b"}));
  }
}

JsonObject NodeTerm(Draw& draw, const ClusterObjects& cluster) {
  JsonObject term;
  JsonArray expressions{NodeRequirement(draw)};
  if (draw.Chance(0.25)) expressions.emplace_back(NodeRequirement(draw));
  if (draw.Chance(0.85)) term["matchExpressions"] = std::move(expressions);
  if (draw.Chance(term.empty() ? 0.8 : 0.1)) {
    std::vector<std::string> names;
    names.reserve(cluster.nodes.size() + 1);
    for (const Json& node : cluster.nodes) names.emplace_back(FindString(node, "metadata", "name"));
    names.emplace_back("nowhere");
    term["matchFields"] = JsonArray{Requirement("metadata.name", draw.Of({"In", "In", "NotIn"}),
                                                JsonArray{Json(draw.Of(names))})};
  }
  return term;  // an empty term selects no node
}

JsonObject PodTerm(Draw& draw) {
  JsonObject term{{"topologyKey", draw.Of({"topology.kubernetes.io/zone", "kubernetes.io/hostname",
                                           "rack", "topology.kubernetes.io/region"})}};
  if (draw.Chance(0.95)) term["labelSelector"] = MakeLabelSelector(draw);
  if (draw.Chance(0.2)) term["namespaces"] = draw.Few(kNamespaceNames);
  if (draw.Chance(0.2)) {
    term["namespaceSelector"] =
        draw.Chance(0.3)
            ? JsonObject{}
            : JsonObject{{"matchLabels", JsonObject{{"team", draw.Of({"one", "two"})}}}};
  }
  if (term.contains("labelSelector") && draw.Chance(0.1)) {
    const char* list = draw.Chance(0.6) ? "matchLabelKeys" : "mismatchLabelKeys";
    term[list] = JsonArray{Json("version")};
  }
  return term;
}

JsonObject PodTerms(Draw& draw, double required) {
  JsonObject terms;
  if (draw.Chance(required)) {
    JsonArray list{PodTerm(draw)};
    if (draw.Chance(0.2)) list.emplace_back(PodTerm(draw));
    terms["requiredDuringSchedulingIgnoredDuringExecution"] = std::move(list);
  }
  if (terms.empty() || draw.Chance(0.3)) {
    JsonArray list;
    for (int i = draw.Between(1, 2); i > 0; --i) {
      list.emplace_back(
          JsonObject{{"weight", draw.Between(1, 100)}, {"podAffinityTerm", PodTerm(draw)}});
    }
    terms["preferredDuringSchedulingIgnoredDuringExecution"] = std::move(list);
  }
  return terms;
}

JsonObject SpreadConstraint(Draw& draw) {
  const bool hard = draw.Chance(0.5);
  JsonObject constraint{
      {"maxSkew", draw.Between(1, 3)},
      {"topologyKey", draw.Of({"topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"})},
      {"whenUnsatisfiable", hard ? "DoNotSchedule" : "ScheduleAnyway"}};
  if (draw.Chance(0.95)) constraint["labelSelector"] = MakeLabelSelector(draw);
  if (hard && draw.Chance(0.3)) constraint["minDomains"] = draw.Between(1, 4);
  if (draw.Chance(0.3)) constraint["nodeAffinityPolicy"] = draw.Of({"Honor", "Ignore"});
  if (draw.Chance(0.3)) constraint["nodeTaintsPolicy"] = draw.Of({"Honor", "Ignore"});
  if (constraint.contains("labelSelector") && draw.Chance(0.15)) {
    constraint["matchLabelKeys"] = JsonArray{Json("version")};
  }
  return constraint;
}

}  // namespace

JsonObject MakePodLabels(Draw& draw) {
  JsonObject labels;
  if (draw.Chance(0.9)) labels["app"] = draw.Of(kApps);
  if (draw.Chance(0.7)) labels["tier"] = draw.Of(kTiers);
  if (draw.Chance(0.5)) labels["version"] = draw.Of({"1", "2"});
  return labels;
}

Json MakeLabelSelector(Draw& draw) {
  JsonObject selector;
  if (draw.Chance(0.65)) selector["matchLabels"] = JsonObject{{"app", draw.Of(kApps)}};
  if (draw.Chance(selector.empty() ? 0.9 : 0.15)) {
    JsonArray expressions;
    switch (draw.Between(0, 3)) {
      case 0:
        expressions.emplace_back(Requirement("tier", "In", draw.Few(kTiers)));
        break;
      case 1:
        expressions.emplace_back(Requirement("tier", "NotIn", draw.Few(kTiers)));
        break;
      case 2:
        expressions.emplace_back(Requirement("tier", "Exists"));
        break;
      default:
        expressions.emplace_back(Requirement("tier", "DoesNotExist"));
        break;
    }
    selector["matchExpressions"] = std::move(expressions);
  }
  return selector;  // an empty selector selects all pods
}

JsonArray MakeTolerations(Draw& draw) {
  JsonArray tolerations;
  if (draw.Chance(0.08)) return {JsonObject{{"operator", "Exists"}}};
  for (int i = draw.Between(1, 2); i > 0; --i) {
    JsonObject toleration{{"key", draw.Of({"dedicated", "flaky", "maintenance",
                                           "node.kubernetes.io/unschedulable"})}};
    if (draw.Chance(0.5)) {
      toleration["operator"] = "Exists";
    } else {
      toleration["value"] = draw.Of({"blue", "red"});
    }
    if (draw.Chance(0.5)) {
      toleration["effect"] = draw.Of({"NoSchedule", "PreferNoSchedule", "NoExecute"});
    }
    tolerations.emplace_back(std::move(toleration));
  }
  return tolerations;
}

void AddNodeAffinity(Draw& draw, const ClusterObjects& cluster, JsonObject& spec) {
  if (draw.Chance(0.1) && !spec.contains("runtimeClassName")) {
    spec["nodeSelector"] = JsonObject{{"disk", draw.Of({"ssd", "hdd"})}};
  }
  if (!draw.Chance(0.3)) return;
  JsonObject affinity;
  if (draw.Chance(0.6)) {
    JsonArray terms{NodeTerm(draw, cluster)};
    if (draw.Chance(0.3)) terms.emplace_back(NodeTerm(draw, cluster));
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] =
        JsonObject{{"nodeSelectorTerms", std::move(terms)}};
  }
  if (draw.Chance(0.6)) {
    JsonArray preferred;
    for (int i = draw.Between(1, 3); i > 0; --i) {
      preferred.emplace_back(
          JsonObject{{"weight", draw.Between(1, 100)}, {"preference", NodeTerm(draw, cluster)}});
    }
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = std::move(preferred);
  }
  if (!affinity.empty()) spec["affinity"] = JsonObject{{"nodeAffinity", std::move(affinity)}};
}

void AddPodAffinity(Draw& draw, JsonObject& spec) {
  const auto affinity = [&]() -> JsonObject& {
    if (!spec.contains("affinity")) spec["affinity"] = JsonObject{};
    return spec["affinity"].get_object();
  };
  if (draw.Chance(0.15)) affinity()["podAffinity"] = PodTerms(draw, 0.5);
  if (draw.Chance(0.18)) affinity()["podAntiAffinity"] = PodTerms(draw, 0.6);
}

void AddSpread(Draw& draw, const ClusterObjects& cluster, JsonObject& spec) {
  if (!draw.Chance(0.25)) return;
  JsonArray constraints{SpreadConstraint(draw)};
  if (draw.Chance(0.3)) {
    JsonObject second = SpreadConstraint(draw);
    const JsonObject& first = constraints[0].get_object();
    const bool same = first.at("topologyKey") == second.at("topologyKey") &&
                      first.at("whenUnsatisfiable") == second.at("whenUnsatisfiable");
    if (!same) constraints.emplace_back(std::move(second));
  }
  // kube-scheduler counts only nominated pods for an empty selector: docs/scheduler-differences.md.
  for (Json& constraint : constraints) {
    Json* selector =
        cluster.promises ? constraint.get_object().if_contains("labelSelector") : nullptr;
    if (selector != nullptr && selector->get_object().empty()) {
      *selector = JsonObject{{"matchLabels", JsonObject{{"app", "a"}}}};
    }
  }
  spec["topologySpreadConstraints"] = std::move(constraints);
}

}  // namespace nos::differential
