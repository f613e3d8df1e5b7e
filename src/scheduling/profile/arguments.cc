#include "scheduling/profile/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/names.h"
#include "base/text.h"

namespace nos::scheduling {
namespace {

using cluster::NodeSelectorTerm;
using cluster::SelectorRequirement;
using cluster::TopologySpreadConstraint;

constexpr int64_t kMaxShapeScore = 10;  // maximum score of a shape point in the configuration

// Reads plugin arguments, whose apiVersion and kind are optional.
template <typename... Readers>
void ReadArguments(const ConfigValue& args, std::string_view kind,
                   const ConfigValue::Member<Readers>&... members) {
  args.Members(At("apiVersion",
                  [](const ConfigValue& version) {
                    std::string text;
                    version.Read(text);
                    if (text == "kubescheduler.config.k8s.io/v1" ||
                        text == "kubescheduler.config.k8s.io/v1beta3") {
                      return;
                    }
                    version.Fail("must be kubescheduler.config.k8s.io/v1");
                  }),
               At("kind",
                  [&](const ConfigValue& given) {
                    std::string text;
                    given.Read(text);
                    if (text != kind) given.Fail(fmt::format("must be {}", kind));
                  }),
               members...);
}

void ReadOneOf(const ConfigValue& from, const std::vector<std::string_view>& words,
               std::string& to) {
  from.Read(to);
  if (std::ranges::find(words, to) != words.end()) return;
  from.Fail(fmt::format("must be one of {}, not '{}'", fmt::join(words, ", "), to));
}

template <typename Integer>
void ReadRange(const ConfigValue& from, Integer least, Integer most, Integer& to) {
  from.Read(to);
  if (to >= least && to <= most) return;
  most == std::numeric_limits<Integer>::max()
      ? from.Fail(fmt::format("must be at least {}, not {}", least, to))
      : from.Fail(fmt::format("must be from {} to {}, not {}", least, most, to));
}

// An empty list selects the default resources.
void ReadResources(const ConfigValue& from, std::vector<WeightedResource>& to) {
  std::vector<WeightedResource> resources;
  from.Elements([&](const ConfigValue& element) {
    WeightedResource& resource = resources.emplace_back("", 0);
    element.Members(At("name", resource.name), At("weight", resource.weight));
    if (resource.weight == 0) resource.weight = 1;
  });
  if (!resources.empty()) to = std::move(resources);
}

void ReadWeightedResources(const ConfigValue& from, std::vector<WeightedResource>& to) {
  ReadResources(from, to);
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].weight >= 1 && to[i].weight <= 100) continue;
    from.FailAt(from.PathOf(i) + ".weight",
                fmt::format("the weight of {} must be from 1 to 100", to[i].name));
  }
}

void ReadShape(const ConfigValue& from, std::vector<ShapePoint>& to) {
  from.Elements([&](const ConfigValue& element) {
    ShapePoint& point = to.emplace_back();
    int64_t score = 0;
    element.Members(At("utilization",
                       [&](const ConfigValue& value) {
                         ReadRange(value, int64_t{0}, int64_t{100}, point.utilization);
                       }),
                    At("score", [&](const ConfigValue& value) {
                      ReadRange(value, int64_t{0}, kMaxShapeScore, score);
                    }));
    point.score = score * (kMaxScore / kMaxShapeScore);
    if (to.size() > 1 && to[to.size() - 2].utilization >= point.utilization) {
      element.FailAt(element.PathOf("utilization"), "must be greater than the one before");
    }
  });
  if (to.empty()) from.Fail("must have at least one point");
}

void ReadStrategy(const ConfigValue& from, FitOptions& to) {
  if (!from.Present()) return;
  using enum FitOptions::Strategy;
  std::string type;
  from.Members(
      At("type", type),
      At("resources", [&](const ConfigValue& list) { ReadWeightedResources(list, to.resources); }),
      At("requestedToCapacityRatio", [&](const ConfigValue& ratio) {
        if (!ratio.Present()) return;
        ratio.Members(At("shape", [](const ConfigValue&) {}));
        ReadShape(ratio.Get("shape"), to.shape);
      }));
  if (type == "RequestedToCapacityRatio" && !from.Get("requestedToCapacityRatio").Present()) {
    from.FailAt(from.PathOf("requestedToCapacityRatio"), "is missing: its shape");
  }
  ReadOneOf(from.Get("type"), {"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"},
            type);
  to.strategy = type == "MostAllocated"              ? kMaxAllocated
                : type == "RequestedToCapacityRatio" ? kRequestedToCapacityRatio
                                                     : kLeastAllocated;
}

void ReadNames(const ConfigValue& from, bool groups, std::set<std::string, std::less<>>& to) {
  from.Elements([&](const ConfigValue& element) {
    std::string name;
    element.Read(name);
    if (groups && name.find('/') != std::string::npos) {
      return element.Fail(fmt::format("'{}': a group has no '/'", name));
    }
    if (!IsQualifiedName(name)) {
      return element.Fail(fmt::format("'{}' is not the name of a resource", name));
    }
    to.insert(std::move(name));
  });
}

void ReadNamespaces(const ConfigValue& from, std::set<std::string>& to) {
  if (!from.Present()) return;
  to.clear();
  from.Elements([&](const ConfigValue& element) {
    std::string name;
    element.Read(name);
    if (!IsDnsLabel(name)) {
      return element.Fail(fmt::format("'{}' is not the name of a namespace", name));
    }
    to.insert(std::move(name));
  });
}

void CheckExpression(const ConfigValue& at, const SelectorRequirement& requirement) {
  const std::string& op = requirement.op;
  const size_t values = requirement.values.size();
  const auto wrong_value = std::ranges::find_if_not(requirement.values, IsLabelValue);
  if (!IsQualifiedName(requirement.key)) {
    at.FailAt(at.PathOf("key"), fmt::format("'{}' is not the key of a label", requirement.key));
  }
  if ((op == "In" || op == "NotIn") && values == 0) {
    at.FailAt(at.PathOf("values"), fmt::format("must not be empty for {}", op));
  } else if ((op == "Exists" || op == "DoesNotExist") && values != 0) {
    at.FailAt(at.PathOf("values"), fmt::format("must be empty for {}", op));
  } else if ((op == "Gt" || op == "Lt") &&
             (values != 1 || !ParseInt(requirement.values.front()).has_value())) {
    at.FailAt(at.PathOf("values"), fmt::format("must be exactly one whole number for {}", op));
  } else if (wrong_value != requirement.values.end()) {
    at.FailAt(at.PathOf("values"), fmt::format("'{}' is not a label's value", *wrong_value));
  }
}

void CheckField(const ConfigValue& at, const SelectorRequirement& requirement) {
  if (requirement.key != "metadata.name") {
    at.FailAt(at.PathOf("key"), "must be metadata.name");
  }
  if (requirement.values.size() != 1) at.FailAt(at.PathOf("values"), "must be exactly one name");
}

void ReadRequirements(const ConfigValue& from, bool fields, std::vector<SelectorRequirement>& to) {
  static const std::vector<std::string_view> kOperators = {"In",           "NotIn", "Exists",
                                                           "DoesNotExist", "Gt",    "Lt"};
  static const std::vector<std::string_view> kFieldOperators = {"In", "NotIn"};
  from.Elements([&](const ConfigValue& element) {
    SelectorRequirement& requirement = to.emplace_back();
    element.Members(At("key", requirement.key), At("operator", [](const ConfigValue&) {}),
                    At("values", requirement.values));
    ReadOneOf(element.Get("operator"), fields ? kFieldOperators : kOperators, requirement.op);
    fields ? CheckField(element, requirement) : CheckExpression(element, requirement);
  });
}

void ReadTerm(const ConfigValue& from, NodeSelectorTerm& to) {
  from.Members(
      At("matchExpressions",
         [&](const ConfigValue& list) { ReadRequirements(list, false, to.match_expressions); }),
      At("matchFields",
         [&](const ConfigValue& list) { ReadRequirements(list, true, to.match_fields); }));
}

void ReadRequired(const ConfigValue& from, cluster::NodeAffinity& to) {
  if (!from.Present()) return;
  auto& terms = to.required.emplace();
  from.Members(At("nodeSelectorTerms", [&](const ConfigValue& list) {
    list.Elements([&](const ConfigValue& element) { ReadTerm(element, terms.emplace_back()); });
  }));
}

void ReadPreferred(const ConfigValue& from, cluster::NodeAffinity& to) {
  from.Elements([&](const ConfigValue& element) {
    cluster::PreferredNodeTerm& preferred = to.preferred.emplace_back();
    element.Members(At("weight", preferred.weight), At("preference", [&](const ConfigValue& term) {
                      ReadTerm(term, preferred.term);
                    }));
  });
}

void ReadSpread(const ConfigValue& from, TopologySpreadConstraint& to) {
  static const std::vector<std::string_view> kPolicies = {"Honor", "Ignore"};
  to.max_skew = 0;
  const auto read_policy = [](std::string& policy) {
    return [&policy](const ConfigValue& value) {
      if (value.Present()) ReadOneOf(value, kPolicies, policy);
    };
  };
  from.Members(At("maxSkew", to.max_skew), At("topologyKey", to.topology_key),
               At("whenUnsatisfiable", [](const ConfigValue&) {}),
               At("labelSelector",
                  [](const ConfigValue& selector) {
                    if (selector.Present()) selector.Fail("must not be set: each pod has its own");
                  }),
               At("minDomains", to.min_domains),
               At("nodeAffinityPolicy", read_policy(to.node_affinity_policy)),
               At("nodeTaintsPolicy", read_policy(to.node_taints_policy)),
               At("matchLabelKeys", to.match_label_keys));
  ReadOneOf(from.Get("whenUnsatisfiable"), {"DoNotSchedule", "ScheduleAnyway"},
            to.when_unsatisfiable);
  if (to.max_skew < 1) from.FailAt(from.PathOf("maxSkew"), "must be at least 1");
  if (!IsQualifiedName(to.topology_key)) {
    from.FailAt(from.PathOf("topologyKey"),
                fmt::format("must be the key of a label, not '{}'", to.topology_key));
  }
}

void CheckSpreads(const ConfigValue& list, const std::vector<TopologySpreadConstraint>& spreads) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (size_t i = 0; i < spreads.size(); ++i) {
    const auto& [key, when] = std::tie(spreads[i].topology_key, spreads[i].when_unsatisfiable);
    if (!seen.emplace(key, when).second) {
      list.FailAt(list.PathOf(i), fmt::format("there is one for {} and {} already", key, when));
    }
  }
}

}  // namespace

FitOptions ReadFitArguments(const ConfigValue& args) {
  FitOptions to;
  ReadArguments(args, "NodeResourcesFitArgs",
                At("ignoredResources",
                   [&](const ConfigValue& list) { ReadNames(list, false, to.ignored_resources); }),
                At("ignoredResourceGroups",
                   [&](const ConfigValue& list) { ReadNames(list, true, to.ignored_groups); }),
                At("scoringStrategy", [&](const ConfigValue& value) { ReadStrategy(value, to); }));
  return to;
}

BalanceOptions ReadBalanceArguments(const ConfigValue& args) {
  BalanceOptions to;
  ReadArguments(
      args, "NodeResourcesBalancedAllocationArgs",
      At("resources", [&](const ConfigValue& list) { ReadResources(list, to.resources); }));
  const ConfigValue list = args.Get("resources");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < to.resources.size(); ++i) {
    const auto& [name, weight] = to.resources[i];
    if (!seen.insert(name).second) {
      list.FailAt(list.PathOf(i) + ".name", fmt::format("'{}' is listed twice", name));
    }
    if (weight != 1) list.FailAt(list.PathOf(i) + ".weight", "must be 1");
  }
  return to;
}

NodeAffinityOptions ReadNodeAffinityArguments(const ConfigValue& args) {
  NodeAffinityOptions to;
  const auto read = [&](const ConfigValue& affinity) {
    affinity.Members(At("requiredDuringSchedulingIgnoredDuringExecution",
                        [&](const ConfigValue& required) { ReadRequired(required, to.added); }),
                     At("preferredDuringSchedulingIgnoredDuringExecution",
                        [&](const ConfigValue& preferred) { ReadPreferred(preferred, to.added); }));
  };
  ReadArguments(args, "NodeAffinityArgs", At("addedAffinity", read));
  return to;
}

InterPodAffinityOptions ReadInterPodAffinityArguments(const ConfigValue& args) {
  InterPodAffinityOptions to;
  ReadArguments(
      args, "InterPodAffinityArgs",
      At("hardPodAffinityWeight",
         [&](const ConfigValue& value) { ReadRange(value, 0, 100, to.hard_pod_affinity_weight); }),
      At("ignorePreferredTermsOfExistingPods", to.ignore_preferred_terms_of_existing_pods));
  return to;
}

PodTopologySpreadOptions ReadTopologySpreadArguments(const ConfigValue& args) {
  PodTopologySpreadOptions to;
  std::string type = "System";
  ReadArguments(args, "PodTopologySpreadArgs",
                At("defaultConstraints",
                   [&](const ConfigValue& list) {
                     list.Elements([&](const ConfigValue& element) {
                       ReadSpread(element, to.default_constraints.emplace_back());
                     });
                   }),
                At("defaultingType", [&](const ConfigValue& value) {
                  value.Read(type);
                  if (!type.empty()) ReadOneOf(value, {"System", "List"}, type);
                }));
  CheckSpreads(args.Get("defaultConstraints"), to.default_constraints);
  to.system_defaults = type != "List";
  if (to.system_defaults && !to.default_constraints.empty()) {
    args.FailAt(args.PathOf("defaultingType"), "must be List when there are defaultConstraints");
  }
  return to;
}

Duration ReadVolumeBindingArguments(const ConfigValue& args) {
  constexpr int64_t kMaxSeconds = std::numeric_limits<int64_t>::max();
  int64_t seconds = 600;
  ReadArguments(
      args, "VolumeBindingArgs",
      At("bindTimeoutSeconds",
         [&](const ConfigValue& value) { ReadRange(value, int64_t{0}, kMaxSeconds, seconds); }),
      At("shape", [](const ConfigValue& shape) {
        if (shape.Present()) shape.Fail("is not supported: storage is not scored");
      }));
  return SecondsAtMost(seconds);
}

Duration ReadDynamicResourcesArguments(const ConfigValue& args) {
  Duration filter{}, binding = std::chrono::seconds(600);
  const auto read = [](const ConfigValue& value, Duration& to) {
    value.Read(to);
    if (to < Duration::zero()) value.Fail("must not be negative");
  };
  ReadArguments(args, "DynamicResourcesArgs",
                At("filterTimeout", [&](const ConfigValue& value) { read(value, filter); }),
                At("bindingTimeout", [&](const ConfigValue& value) { read(value, binding); }));
  return binding;
}

PreemptionOptions ReadPreemptionArguments(const ConfigValue& args) {
  PreemptionOptions to;
  ReadArguments(
      args, "DefaultPreemptionArgs",
      At("minCandidateNodesPercentage",
         [&](const ConfigValue& value) { ReadRange(value, 0, 100, to.min_candidate_percentage); }),
      At("minCandidateNodesAbsolute", [&](const ConfigValue& value) {
        ReadRange(value, 0, std::numeric_limits<int>::max(), to.min_candidates);
      }));
  if (args.Present() && to.min_candidate_percentage == 0 && to.min_candidates == 0) {
    args.Fail("minCandidateNodesPercentage and minCandidateNodesAbsolute must not both be 0");
  }
  return to;
}

QuotaOptions ReadQuotaArguments(const ConfigValue& args) {
  constexpr int64_t kMaxGb = 1'000'000;
  constexpr int64_t kYear = int64_t{365} * 24 * 3600;
  QuotaOptions to;
  int64_t max_grace = std::chrono::floor<std::chrono::seconds>(to.max_grace).count();
  ReadArguments(
      args, "CapacitySchedulingArgs",
      At("nvidiaGpuResourceMemoryGB",
         [&](const ConfigValue& value) {
           ReadRange(value, int64_t{0}, kMaxGb, to.charges.gpu_memory_gb);
         }),
      At("reclaimFromPodsWithoutQuota", to.reclaim.from_pods_without_quota),
      At("reclaimMaxGracePeriodSeconds",
         [&](const ConfigValue& value) { ReadRange(value, int64_t{1}, kYear, max_grace); }),
      At("reclaimExemptNamespaces",
         [&](const ConfigValue& list) { ReadNamespaces(list, to.exempt_namespaces); }));
  to.max_grace = std::chrono::seconds(max_grace);
  return to;
}

}  // namespace nos::scheduling
