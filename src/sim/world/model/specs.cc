#include "sim/specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "cluster/annotations.h"
#include "cluster/elastic_quota.h"
#include "device/mps_share.h"
#include "gpu/modes.h"
#include "gpu/product.h"
#include "gpu/shares.h"

namespace nos::sim {
namespace {

const kube::Resource kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                  "CustomResourceDefinition", false};

JsonObject ToJson(const cluster::StringMap& map) {
  JsonObject out;
  for (const auto& [key, value] : map) out[key] = value;
  return out;
}

JsonArray TolerationsJson(const std::vector<cluster::Toleration>& tolerations) {
  JsonArray out;
  for (const auto& toleration : tolerations) {
    JsonObject entry;
    if (!toleration.key.empty()) entry["key"] = toleration.key;
    entry["operator"] = toleration.op.empty() ? "Equal" : toleration.op;
    if (!toleration.value.empty()) entry["value"] = toleration.value;
    if (!toleration.effect.empty()) entry["effect"] = toleration.effect;
    out.push_back(std::move(entry));
  }
  return out;
}

JsonObject LimitsJson(const std::map<std::string, int>& slices) {
  JsonObject limits;
  for (const auto& [profile, n] : slices) limits[SliceResource(profile)] = fmt::to_string(n);
  return limits;
}

Json ContainerJson(std::string_view name, JsonObject limits, JsonObject requests) {
  return JsonObject{
      {"name", name},
      {"image", "registry.k8s.io/pause:3.9"},
      {"resources", JsonObject{{"limits", std::move(limits)}, {"requests", std::move(requests)}}}};
}

// "devices", "devices-1", ...
std::string ClaimRefName(size_t i) { return i == 0 ? "devices" : fmt::format("devices-{}", i); }

JsonArray ClaimsJson(const PodSpec& spec) {
  JsonArray out;
  for (size_t i = 0; i < spec.claims.size(); ++i) {
    JsonObject claim = {{"name", ClaimRefName(i)}};
    const ClaimRefSpec& from = spec.claims[i];
    if (!from.claim.empty()) claim["resourceClaimName"] = from.claim;
    if (!from.template_name.empty()) claim["resourceClaimTemplateName"] = from.template_name;
    out.push_back(std::move(claim));
  }
  return out;
}

JsonArray ContainersJson(const PodSpec& spec) {
  JsonArray out;
  const size_t count = std::max<size_t>(1, spec.containers.size());
  for (size_t i = 0; i < count; ++i) {
    JsonObject limits;
    if (i < spec.containers.size()) limits = LimitsJson(spec.containers[i]);
    JsonObject requests = limits;
    if (i == 0 && spec.cpu > Quantity()) requests["cpu"] = spec.cpu.ToString();
    if (i == 0 && spec.memory > Quantity()) requests["memory"] = spec.memory.ToBinaryString();
    out.push_back(ContainerJson(count == 1 ? "main" : fmt::format("c{}", i), std::move(limits),
                                std::move(requests)));
  }
  return out;
}

cluster::StringMap NodeLabels(const NodeSpec& spec) {
  cluster::StringMap labels = {{"kubernetes.io/hostname", spec.name},
                               {"kubernetes.io/arch", ArchitectureOf(spec)},
                               {"kubernetes.io/os", "linux"}};
  if (!spec.gpus.empty()) {
    labels[std::string(cluster::kProductLabel)] = ProductLabel(spec.gpus[0].model);
    labels[std::string(cluster::kCountLabel)] = fmt::to_string(spec.gpus.size());
    const auto model = FindModel(gpu::Catalogue::Builtin(), spec.gpus[0].model);
    if (model.ok()) labels["nvidia.com/gpu.memory"] = fmt::to_string((*model)->memory_gib() * 1024);
    labels["nvidia.com/mig.strategy"] = "mixed";
    if (spec.managed) {
      labels[std::string(cluster::kPartitioningLabel)] = spec.hybrid ? "hybrid"
                                                         : spec.mps  ? "mps"
                                                                     : "mig";
    }
  }
  for (const auto& [key, value] : spec.labels) labels[key] = value;
  return labels;
}

JsonObject RequiredTerms(const std::vector<OthersSpec>& others) {
  JsonArray terms;
  for (const OthersSpec& other : others) {
    const JsonObject selector = {{"matchLabels", JsonObject{{other.label, other.value}}}};
    terms.push_back(JsonObject{{"topologyKey", other.topology_key}, {"labelSelector", selector}});
  }
  return {{"requiredDuringSchedulingIgnoredDuringExecution", std::move(terms)}};
}

}  // namespace

std::string SliceResource(std::string_view profile) {
  if (profile == "gpu") return std::string(gpu::kWholeGpu);
  if (profile == "shared") return std::string(gpu::kTimeSlice);
  if (device::ParseMpsProfile(profile)) return fmt::format("nvidia.com/gpu-{}", profile);
  std::string name = fmt::format("nvidia.com/mig-{}", profile);
  std::replace(name.begin(), name.end(), '+', '.');
  return name;
}

Result<const gpu::Model*> FindModel(const gpu::Catalogue& catalogue, std::string_view name) {
  if (const auto* model = catalogue.FindByName(name)) return model;
  if (const auto* model = catalogue.FindByProduct(name)) return model;
  if (const auto* model = gpu::FindShares(name)) return model;
  std::string known;
  for (const auto& model : catalogue.models()) {
    known += (known.empty() ? "" : ", ") + model->name();
  }
  return NotFound(fmt::format("no GPU model '{}'; there are {}", name, known));
}

std::vector<gpu::InstancePart> MigPartsHere() { return gpu::ParseParts(kMigParts).value(); }

const gpu::Model* FindUnsharedModel(const gpu::Catalogue& catalogue, const gpu::Model& model,
                                    bool may_reset) {
  const bool mig = !model.counted() && (may_reset || !agent::NeedsReset(model));
  gpu::SharingModes modes{.mig = mig ? &model : nullptr,
                          .memory_gib = model.memory_gib(),
                          .whole = true,
                          .parts = MigPartsHere()};
  const bool small = !model.counted() && model.slots() < gpu::kPlainSlots;
  if (!mig && small) modes.slots = model.slots();
  modes.time_slices = std::min(kTimeSlices, gpu::MostTimeSlices(modes));
  return catalogue.FindSharingModes(gpu::NameOf(modes));
}

Result<const gpu::Model*> FindDividedModel(const gpu::Catalogue& catalogue, const NodeSpec& node,
                                           const GpuSpec& gpu) {
  NOS_ASSIGN(const gpu::Model* model, FindModel(catalogue, gpu.model));
  if (node.hybrid) {
    return FindUnsharedModel(catalogue, *model, node.resets == agent::ResetRule::kGpu);
  }
  const gpu::Model* shares =
      gpu::SharesOfMemory(int64_t{model->memory_gib()} * 1024, node.max_shares);
  return node.mps && !model->counted() && shares != nullptr ? shares : model;
}

std::string ProductLabel(std::string_view model) {
  // Products as GPU feature discovery prints them, if that is not "NVIDIA-" and the model's name.
  static const std::map<std::string_view, std::string_view> products = {
      {"A100-40GB", "NVIDIA-A100-SXM4-40GB"},
      {"A100-80GB", "NVIDIA-A100-SXM4-80GB"},
      {"H100-80GB", "NVIDIA-H100-80GB-HBM3"},
      {"H100-PCIE-80GB", "NVIDIA-H100-PCIe"},
      {"H100-NVL-94GB", "NVIDIA-H100-NVL"},
      {"H100-96GB", "NVIDIA-GH200-480GB"},
      {"GH200-144GB", "NVIDIA-GH200-144G-HBM3e"},
      {"H200-141GB", "NVIDIA-H200"},
      {"RTX-PRO-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"}};
  const auto known = products.find(model);
  if (known != products.end()) return std::string(known->second);
  if (model.starts_with("NVIDIA")) return std::string(model);
  return fmt::format("NVIDIA-{}", model);
}

Json NodeObject(const NodeSpec& spec) {
  const JsonObject resources = {{"cpu", spec.cpu.ToString()},
                                {"memory", spec.memory.ToBinaryString()},
                                {"pods", fmt::to_string(spec.max_pods)}};
  JsonObject node_spec;
  if (!spec.taints.empty()) node_spec["taints"] = TaintsJson(spec.taints);
  if (spec.unschedulable) node_spec["unschedulable"] = true;
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Node"},
                    {"metadata", JsonObject{{"name", spec.name},
                                            {"labels", ToJson(NodeLabels(spec))},
                                            {"annotations", ToJson(spec.annotations)}}},
                    {"spec", std::move(node_spec)},
                    {"status", JsonObject{{"capacity", resources}, {"allocatable", resources}}}};
}

std::string ArchitectureOf(const NodeSpec& spec) {
  return std::string(gpu::ArchitectureOfHost(spec.gpus.empty() ? "" : spec.gpus[0].model));
}

std::string PriorityClassName(int priority) {
  return fmt::format("priority-{}{}", priority < 0 ? "minus-" : "", std::abs(priority));
}

Json PriorityClassObject(int priority) {
  return JsonObject{{"apiVersion", "scheduling.k8s.io/v1"},
                    {"kind", "PriorityClass"},
                    {"metadata", JsonObject{{"name", PriorityClassName(priority)}}},
                    {"value", priority}};
}

Json ClaimTemplateObject(const std::string& name, const std::string& profile) {
  const JsonObject selector = {
      {"cel",
       JsonObject{{"expression",
                   fmt::format("device.attributes['gpu.nvidia.com'].profile == '{}'", profile)}}}};
  const JsonObject exactly = {{"deviceClassName", "mig.nvidia.com"},
                              {"selectors", JsonArray{selector}}};
  const JsonArray requests = {JsonObject{{"name", "slice"}, {"exactly", exactly}}};
  return JsonObject{
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceClaimTemplate"},
      {"metadata", JsonObject{{"name", name}, {"namespace", "default"}}},
      {"spec", JsonObject{{"spec", JsonObject{{"devices", JsonObject{{"requests", requests}}}}}}}};
}

JsonArray TaintsJson(const std::vector<cluster::Taint>& taints) {
  JsonArray out;
  for (const auto& taint : taints) {
    out.push_back(JsonObject{{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  }
  return out;
}

Status PutPodGroup(kube::Client& client, const std::string& name, int least) {
  const kube::Resource groups{"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true};
  const JsonObject spec = {{"spec", JsonObject{{"minMember", least}}}};
  Status changed = client.Patch(groups, "default", name, kube::PatchType::kMerge, spec).status();
  if (changed.code() != Code::kNotFound) return changed;
  JsonObject group = spec;
  group["apiVersion"] = "scheduling.x-k8s.io/v1alpha1";
  group["kind"] = "PodGroup";
  group["metadata"] = JsonObject{{"name", name}, {"namespace", "default"}};
  return client.Create(groups, "default", group).status();
}

Status DefinePodGroups(kube::Client& client) {
  const JsonObject spec = {{"type", "object"},
                           {"properties", {{"minMember", {{"type", "integer"}}}}}};
  const Json version = {
      {"name", "v1alpha1"},
      {"served", true},
      {"storage", true},
      {"schema", {{"openAPIV3Schema", {{"type", "object"}, {"properties", {{"spec", spec}}}}}}}};
  const Json definition = JsonObject{
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", JsonObject{{"name", "podgroups.scheduling.x-k8s.io"}}},
      {"spec", JsonObject{{"group", "scheduling.x-k8s.io"},
                          {"scope", "Namespaced"},
                          {"names", JsonObject{{"plural", "podgroups"}, {"kind", "PodGroup"}}},
                          {"versions", JsonArray{version}}}}};
  return client.Create(kDefinitions, "", definition).status();
}

Status DefineQuotas(kube::Client& client) {
  const JsonObject any = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const Json schema = {{"type", "object"}, {"properties", {{"spec", any}, {"status", any}}}};
  const auto column = [](std::string_view name, std::string_view type, std::string_view path) {
    return Json{{"name", name}, {"type", type}, {"jsonPath", path}};
  };
  const Json version = {
      {"name", cluster::kQuotaVersion},
      {"served", true},
      {"storage", true},
      {"subresources", {{"status", JsonObject()}}},
      {"additionalPrinterColumns",
       JsonArray{column("Min", "string", ".spec.min"), column("Max", "string", ".spec.max"),
                 column("Used", "string", ".status.used"),
                 column("Over-quota", "integer", ".status.podsOverQuota"),
                 column("Age", "date", ".metadata.creationTimestamp")}},
      {"schema", {{"openAPIV3Schema", schema}}}};
  const auto define = [&](std::string_view plural, std::string_view kind, JsonArray short_names) {
    return Json{
        {"apiVersion", "apiextensions.k8s.io/v1"},
        {"kind", "CustomResourceDefinition"},
        {"metadata",
         {{"name", fmt::format("{}.{}", plural, cluster::kQuotaGroup)},
          // `helm install nos -n nos-system` then takes them over, as from an earlier release.
          {"labels", {{"app.kubernetes.io/managed-by", "Helm"}}},
          {"annotations",
           {{"meta.helm.sh/release-name", "nos"},
            {"meta.helm.sh/release-namespace", "nos-system"}}}}},
        {"spec",
         {{"group", cluster::kQuotaGroup},
          {"scope", "Namespaced"},
          {"names", {{"plural", plural}, {"kind", kind}, {"shortNames", std::move(short_names)}}},
          {"versions", JsonArray{version}}}}};
  };
  NOS_RETURN_IF_ERROR(
      client
          .Create(kDefinitions, "", define("elasticquotas", cluster::kElasticQuota, {"eq", "eqs"}))
          .status());
  return client
      .Create(kDefinitions, "",
              define("compositeelasticquotas", cluster::kCompositeQuota, {"ceq", "ceqs"}))
      .status();
}

Json BudgetObject(const std::string& ns, const std::string& name, const std::string& label,
                  const std::string& value) {
  const JsonObject selector = {{"matchLabels", JsonObject{{label, value}}}};
  return JsonObject{{"apiVersion", "policy/v1"},
                    {"kind", "PodDisruptionBudget"},
                    {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
                    {"spec", JsonObject{{"maxUnavailable", 1}, {"selector", selector}}}};
}

Json PodObject(const PodSpec& spec) {
  cluster::StringMap labels = spec.labels;
  labels.emplace(kPodLabel, spec.name);
  JsonObject annotations = ToJson(spec.annotations);
  if (!spec.ends.empty()) annotations[kEnds] = spec.ends;
  if (spec.run) annotations[kRunSeconds] = fmt::format("{}", ToSeconds(*spec.run));
  JsonObject pod_spec = {{"containers", ContainersJson(spec)},
                         {"restartPolicy", "Never"},
                         {"schedulerName", "default-scheduler"},
                         {"terminationGracePeriodSeconds",
                          std::chrono::floor<std::chrono::seconds>(spec.grace).count()}};
  if (spec.host_ipc) pod_spec["hostIPC"] = true;
  if (!spec.init.empty()) {
    annotations[kInitSeconds] = fmt::format("{}", ToSeconds(spec.init_run));
    const JsonObject asked = LimitsJson(spec.init);
    pod_spec["initContainers"] = JsonArray{ContainerJson("init", asked, asked)};
  }
  if (spec.priority != 0) {
    pod_spec["priorityClassName"] = PriorityClassName(spec.priority);
    pod_spec["priority"] = spec.priority;
  }
  if (!spec.node_selector.empty()) pod_spec["nodeSelector"] = ToJson(spec.node_selector);
  if (!spec.tolerations.empty()) pod_spec["tolerations"] = TolerationsJson(spec.tolerations);
  if (!spec.node.empty()) pod_spec["nodeName"] = spec.node;
  if (!spec.claims.empty()) {
    JsonArray used;
    for (size_t i = 0; i < spec.claims.size(); ++i) {
      used.push_back(JsonObject{{"name", ClaimRefName(i)}});
    }
    pod_spec["resourceClaims"] = ClaimsJson(spec);
    MakeObject(pod_spec["containers"].at(0), "resources")["claims"] = std::move(used);
  }
  JsonObject affinity;
  if (!spec.near.empty()) affinity["podAffinity"] = RequiredTerms(spec.near);
  if (!spec.apart.empty()) affinity["podAntiAffinity"] = RequiredTerms(spec.apart);
  if (!affinity.empty()) pod_spec["affinity"] = std::move(affinity);
  JsonObject meta = {{"name", spec.name},
                     {"namespace", spec.ns},
                     {"labels", ToJson(labels)},
                     {"annotations", std::move(annotations)}};
  if (!spec.owner.empty()) {
    meta["ownerReferences"] = JsonArray{JsonObject{{"apiVersion", "batch/v1"},
                                                   {"kind", "Job"},
                                                   {"name", spec.owner},
                                                   {"uid", "job-" + spec.owner},
                                                   {"controller", true}}};
  }
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", std::move(meta)},
                    {"spec", std::move(pod_spec)},
                    {"status", JsonObject{{"phase", "Pending"}}}};
}

}  // namespace nos::sim
