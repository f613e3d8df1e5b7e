#include "controllers/relocation/placeholder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cluster/host_ports.h"

namespace nos::controllers {
namespace {

using cluster::ResourceList;

// What may be asked for without a limit, and in parts; of all else, limit and request are the same.
bool IsDivisible(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage";
}

// What the container asks for of what is given out as a whole.
ResourceList DevicesOf(const cluster::Container& container) {
  ResourceList devices;
  for (const auto* list : {&container.requests, &container.limits}) {
    for (const auto& [resource, count] : *list) {
      if (!IsDivisible(resource) && count > Quantity()) devices[resource] = count;
    }
  }
  return devices;
}

// The pod's requests, dealt out to as few containers as can have them: one, but for devices, which
// stay with as many containers as had them. Several shares of GPUs for one container would be
// refused (scheduling/several_shares.h).
std::vector<ResourceList> Portions(const cluster::Pod& pod) {
  ResourceList left = cluster::PodRequests(pod);
  std::vector<ResourceList> portions(1);
  const auto add = [&](const cluster::Container& container) {
    ResourceList portion;
    for (const auto& [resource, count] : DevicesOf(container)) {
      const auto rest = left.find(resource);
      if (rest == left.end() || rest->second < count) continue;
      portion[resource] = count;
      rest->second = rest->second - count;
    }
    if (!portion.empty()) portions.push_back(std::move(portion));
  };
  for (const cluster::Container& container : pod.containers) add(container);
  for (const cluster::Container& container : pod.init_containers) {
    if (container.restart_always) add(container);
  }
  // What init containers alone need, and what cannot be told apart.
  for (const auto& [resource, count] : left) {
    if (count <= Quantity()) continue;
    if (IsDivisible(resource)) {
      portions.front()[resource] = count;
    } else {
      portions.push_back({{resource, count}});
    }
  }
  if (portions.size() > 1) {  // the first of those with devices has the rest, too
    portions[1].merge(portions.front());
    portions.erase(portions.begin());
  }
  return portions;
}

Json ResourcesOf(const ResourceList& portion) {
  JsonObject requests, limits;
  for (const auto& [resource, count] : portion) {
    requests[resource] = count.ToString();
    if (!IsDivisible(resource)) limits[resource] = count.ToString();
  }
  return JsonObject{{"requests", std::move(requests)}, {"limits", std::move(limits)}};
}

JsonArray PortsOf(const cluster::Pod& pod) {
  JsonArray ports;
  const cluster::HostPorts all = cluster::HostPortsOf(pod);
  for (const cluster::HostPort& port : all) {
    JsonObject one = {
        {"containerPort", port.port}, {"hostPort", port.port}, {"protocol", port.protocol}};
    if (!port.ip.empty()) one["hostIP"] = port.ip;
    ports.emplace_back(std::move(one));
  }
  return ports;
}

JsonArray TolerationsOf(const cluster::Pod& pod) {
  JsonArray tolerations;
  for (const cluster::Toleration& one : pod.tolerations) {
    JsonObject toleration;
    if (!one.key.empty()) toleration["key"] = one.key;
    if (!one.op.empty()) toleration["operator"] = one.op;
    if (!one.value.empty()) toleration["value"] = one.value;
    if (!one.effect.empty()) toleration["effect"] = one.effect;
    tolerations.emplace_back(std::move(toleration));
  }
  return tolerations;
}

// That of the pod, as far as it says; -1: nothing. Of pods with MPS shares of one GPU, only those
// of one user are served at a time, and agents complain of the others.
int64_t UserOf(const cluster::Pod& pod) {
  for (const cluster::Container& container : pod.containers) {
    if (container.user >= 0) return container.user;
  }
  return pod.user;
}

JsonArray ContainersOf(const RelocationConfig& config, const cluster::Pod& pod) {
  JsonArray containers;
  const std::vector<ResourceList> portions = Portions(pod);
  for (const ResourceList& portion : portions) {
    JsonObject container = {{"name", fmt::format("place-{}", containers.size())},
                            {"image", config.image},
                            {"resources", ResourcesOf(portion)},
                            {"securityContext",
                             {{"allowPrivilegeEscalation", false},
                              {"readOnlyRootFilesystem", true},
                              {"capabilities", {{"drop", JsonArray{"ALL"}}}}}}};
    if (!config.command.empty()) {
      container["command"] = JsonArray(config.command.begin(), config.command.end());
    }
    if (containers.empty()) {
      JsonArray ports = PortsOf(pod);
      if (!ports.empty()) container["ports"] = std::move(ports);
    }
    containers.emplace_back(std::move(container));
  }
  return containers;
}

// Not said: affinity to and from pods, and spreading. Terms of the pod are about the labels of its
// namespace, where this one is not, so that they would say something else here; that they hold has
// been seen by whoever planned the move. preemptionPolicy is said with a class of ours alone: the
// API server refuses one that is not that of the priority class, and so a class that would preempt.
Json SpecOf(const RelocationConfig& config, const PlaceFor& what, const cluster::Pod& pod) {
  const int64_t user = UserOf(pod);
  const JsonObject to = {
      {"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{Json(what.to)}}};
  const JsonObject term = {{"matchFields", JsonArray{Json(to)}}};
  JsonObject security = {{"runAsNonRoot", user != 0},
                         {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  if (user >= 0) security["runAsUser"] = user;
  JsonObject spec = {{"schedulerName", pod.scheduler_name},
                     {"affinity",
                      {{"nodeAffinity",
                        {{"requiredDuringSchedulingIgnoredDuringExecution",
                          {{"nodeSelectorTerms", JsonArray{Json(term)}}}}}}}},
                     {"containers", ContainersOf(config, pod)},
                     {"restartPolicy", "Always"},
                     // Not 0: a pod that is deleted by force is gone before its node has its
                     // devices back, and the node might then refuse who comes next.
                     {"terminationGracePeriodSeconds", 1},
                     {"automountServiceAccountToken", false},
                     {"enableServiceLinks", false},
                     {"securityContext", std::move(security)}};
  if (!pod.tolerations.empty()) spec["tolerations"] = TolerationsOf(pod);
  if (!config.priority_class.empty()) {
    spec["priorityClassName"] = config.priority_class;
    spec["preemptionPolicy"] = "Never";
  } else if (!pod.priority_class.empty()) {
    spec["priorityClassName"] = pod.priority_class;
  }
  // Who has it needs it for MPS shares, or may: what is shared then sees only such pods.
  if (pod.host_ipc) spec["hostIPC"] = true;
  return spec;
}

}  // namespace

std::string NameOfPlaceholder(std::string_view id, int number) {
  return fmt::format("place-{}-{}", id, number);
}

const cluster::OwnerReference* ControllerOf(const cluster::Pod& pod) {
  const auto found = std::ranges::find(pod.meta.owners, true, &cluster::OwnerReference::controller);
  return found == pod.meta.owners.end() ? nullptr : &*found;
}

Result<Json> MakePlaceholder(const RelocationConfig& config, const PlaceFor& what, int number,
                             const cluster::Pod& pod) {
  if (pod.claims_devices) {
    return Invalid(fmt::format(
        "pod {} claims devices (spec.resourceClaims), for which no place can be held", what.pod));
  }
  return Json{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata",
               {{"namespace", config.ns},
                {"name", NameOfPlaceholder(what.id, number)},
                {"labels", {{kPlaceholder, what.id}, {"app.kubernetes.io/part-of", "nos"}}},
                {"annotations",
                 {{kPlaceFor, WritePlaceFor(what)},
                  {planning::kMovable, "false"},
                  {planning::kSafeToEvict, "false"},
                  {planning::kDoNotDisrupt, "true"}}}}},
              {"spec", SpecOf(config, what, pod)}};
}

bool AsksForAsMuch(const cluster::Pod& placeholder, const cluster::Pod& pod) {
  const ResourceList held = cluster::PodRequests(placeholder);
  const ResourceList needed = cluster::PodRequests(pod);
  return std::ranges::all_of(needed, [&](const auto& need) {
    const auto has = held.find(need.first);
    return need.second <= Quantity() || (has != held.end() && has->second >= need.second);
  });
}

}  // namespace nos::controllers
