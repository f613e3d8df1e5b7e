#include "controllers/relocation/placeholder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cluster/host_ports.h"

namespace nos::controllers {
namespace {

using cluster::ResourceList;

// Resources that may be requested in fractions and without a limit. For all others, limit and
// request must be equal.
bool IsDivisible(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage";
}

// The container's requests of indivisible resources.
ResourceList DevicesOf(const cluster::Container& container) {
  ResourceList devices;
  for (const auto* list : {&container.requests, &container.limits}) {
    for (const auto& [resource, count] : *list) {
      if (!IsDivisible(resource) && count > Quantity()) devices[resource] = count;
    }
  }
  return devices;
}

// Splits the pod's requests among containers: one container for all, but devices stay in as many
// containers as had them. Several shares of GPUs in one container would be rejected
// (scheduling/several_shares.h).
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
  // Requests of init containers only, and those that belong to no single container.
  for (const auto& [resource, count] : left) {
    if (count <= Quantity()) continue;
    if (IsDivisible(resource)) {
      portions.front()[resource] = count;
    } else {
      portions.push_back({{resource, count}});
    }
  }
  if (portions.size() > 1) {  // the first container with devices takes the rest, too
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

// The Unix user of the first container that sets one, else of the pod; -1: none. A GPU with MPS
// serves only pods of one user at a time, and agents report pods of other users. Root is none: the
// namespace of placeholders does not admit it.
int64_t UserOf(const cluster::Pod& pod) {
  for (const cluster::Container& container : pod.containers) {
    if (container.user >= 0) return container.user > 0 ? container.user : -1;
  }
  return pod.user > 0 ? pod.user : -1;
}

JsonArray ContainersOf(const RelocationConfig& config, const cluster::Pod& pod) {
  JsonArray containers;
  const std::vector<ResourceList> portions = Portions(pod);
  for (const ResourceList& portion : portions) {
    JsonObject container = HoldingContainer(fmt::format("place-{}", containers.size()),
                                            config.image, config.command, ResourcesOf(portion));
    if (containers.empty()) {
      JsonArray ports = PortsOf(pod);
      if (!ports.empty()) container["ports"] = std::move(ports);
    }
    containers.emplace_back(std::move(container));
  }
  return containers;
}

// Leaves out pod affinity and topology spread: their terms select labels within the pod's own
// namespace and would mean something else here. The planner of the move has checked them.
// preemptionPolicy is set only with nos's own class: the API server rejects a policy that differs
// from that of the priority class.
Json SpecOf(const RelocationConfig& config, const PlaceFor& what, const cluster::Pod& pod) {
  const int64_t user = UserOf(pod);
  const JsonObject to = {
      {"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{Json(what.to)}}};
  const JsonObject term = {{"matchFields", JsonArray{Json(to)}}};
  JsonObject security = {{"runAsNonRoot", true}, {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  if (user >= 0) security["runAsUser"] = user;
  JsonObject spec = {{"schedulerName", pod.scheduler_name},
                     {"affinity",
                      {{"nodeAffinity",
                        {{"requiredDuringSchedulingIgnoredDuringExecution",
                          {{"nodeSelectorTerms", JsonArray{Json(term)}}}}}}}},
                     {"containers", ContainersOf(config, pod)},
                     {"restartPolicy", "Always"},
                     // Not 0: a force-deleted pod is gone before the kubelet has its devices back,
                     // and the kubelet might reject the next pod.
                     {"terminationGracePeriodSeconds", 1},
                     {"automountServiceAccountToken", false},
                     {"enableServiceLinks", false},
                     {"securityContext", std::move(security)}};
  if (!pod.tolerations.empty()) spec["tolerations"] = TolerationsOf(pod);
  if (!config.pull_secrets.empty()) spec["imagePullSecrets"] = PullSecrets(config.pull_secrets);
  if (!config.priority_class.empty()) {
    spec["priorityClassName"] = config.priority_class;
    spec["preemptionPolicy"] = "Never";
  } else if (!pod.priority_class.empty()) {
    spec["priorityClassName"] = pod.priority_class;
  }
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

JsonObject HoldingContainer(std::string name, const std::string& image,
                            const std::vector<std::string>& command, Json resources) {
  JsonObject container = {{"name", std::move(name)},
                          {"image", image},
                          {"resources", std::move(resources)},
                          {"securityContext",
                           {{"allowPrivilegeEscalation", false},
                            {"readOnlyRootFilesystem", true},
                            {"capabilities", {{"drop", JsonArray{"ALL"}}}}}}};
  if (!command.empty()) container["command"] = JsonArray(command.begin(), command.end());
  return container;
}

JsonArray PullSecrets(const std::vector<std::string>& names) {
  JsonArray secrets;
  for (const std::string& name : names) secrets.push_back(JsonObject{{"name", name}});
  return secrets;
}

Result<Json> MakePlaceholder(const RelocationConfig& config, const PlaceFor& what, int number,
                             const cluster::Pod& pod) {
  if (!pod.claims.empty()) {
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
