#include "sim/world/model/pool_specs.h"

#include <fmt/format.h>

#include <utility>

#include "cluster/node_template.h"

namespace nos::sim {
namespace {

const kube::Resource kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                  "CustomResourceDefinition", false};

std::string ApiVersionOf(const kube::Resource& resource) {
  return resource.group + "/" + resource.version;
}

Status OrThereAlready(const Status& created) {
  return created.code() == Code::kAlreadyExists ? Status::Ok() : created;
}

// Defines a CRD. `version`: its schema, columns and subresources.
Status Define(kube::Client& client, const kube::Resource& resource, JsonArray short_names,
              JsonObject version) {
  version["name"] = resource.version;
  version["served"] = true;
  version["storage"] = true;
  const JsonObject any = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  version["schema"] =
      JsonObject{{"openAPIV3Schema", JsonObject{{"type", "object"},
                                                {"properties", {{"spec", any}, {"status", any}}}}}};
  const JsonObject names = {
      {"plural", resource.plural}, {"kind", resource.kind}, {"shortNames", std::move(short_names)}};
  const Json definition = JsonObject{
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", JsonObject{{"name", fmt::format("{}.{}", resource.plural, resource.group)}}},
      {"spec", JsonObject{{"group", resource.group},
                          {"scope", resource.namespaced ? "Namespaced" : "Cluster"},
                          {"names", names},
                          {"versions", JsonArray{std::move(version)}}}}};
  return OrThereAlready(client.Create(kDefinitions, "", definition).status());
}

Json Column(std::string_view name, std::string_view type, std::string_view path) {
  return JsonObject{{"name", name}, {"type", type}, {"jsonPath", path}};
}

JsonObject Meta(std::string_view name) { return {{"name", name}, {"namespace", kInfraNamespace}}; }

JsonObject ToJson(const cluster::StringMap& map) {
  JsonObject out;
  for (const auto& [key, value] : map) out[key] = value;
  return out;
}

JsonObject GpusJson(const NodeSpec& node) {
  const std::string& model = node.gpus.front().model;
  const bool product = gpu::Catalogue::Builtin().FindByName(model) == nullptr;
  const char* partitioning = !node.managed ? "none"
                             : node.hybrid ? "hybrid"
                             : node.mps    ? "mps"
                                           : "mig";
  JsonObject gpus = {{product ? "product" : "model", model},
                     {"count", static_cast<int64_t>(node.gpus.size())},
                     {"partitioning", partitioning}};
  if (node.managed && node.hybrid) gpus["timeSlices"] = kTimeSlices;
  return gpus;
}

void DescribeNodes(const PoolSpec& spec, JsonObject& body) {
  cluster::StringMap labels = spec.node.labels;
  labels[std::string(kPoolLabel)] = spec.name;
  body["cpu"] = spec.node.cpu.ToString();
  body["memory"] = spec.node.memory.ToBinaryString();
  body["pods"] = spec.node.max_pods;
  body["labels"] = ToJson(labels);
  if (!spec.node.gpus.empty()) body["gpu"] = GpusJson(spec.node);
  if (!spec.node.taints.empty()) body["taints"] = TaintsJson(spec.node.taints);
}

int64_t WholeOr(const cluster::ResourceList& resources, std::string_view name, int64_t otherwise) {
  const auto found = resources.find(name);
  return found == resources.end() ? otherwise : found->second.Value();
}

}  // namespace

const kube::Resource kPoolResource{
    std::string(cluster::kPoolGroup), std::string(cluster::kPoolVersion),
    std::string(cluster::kNodePools), std::string(cluster::kNodePool), false};
const kube::Resource kMachineSets{"infra.nos.example", "v1", "machinesets", "MachineSet", true};
const kube::Resource kMachines{"cluster.x-k8s.io", "v1beta1", "machines", "Machine", true};

Status DefinePools(kube::Client& client) {
  const JsonObject status_only = {{"status", JsonObject()}};
  NOS_RETURN_IF_ERROR(Define(
      client, kPoolResource, JsonArray{"nospool", "nospools"},
      {{"subresources", status_only},
       {"additionalPrinterColumns",
        JsonArray{Column("GPU", "string", ".spec.gpu.model"),
                  Column("GPUs", "integer", ".spec.gpu.count"),
                  Column("Partitioning", "string", ".spec.gpu.partitioning"),
                  Column("Min", "integer", ".spec.min"), Column("Max", "integer", ".spec.max"),
                  Column("Nodes", "integer", ".status.nodes"),
                  Column("Price", "string", ".spec.price"),
                  Column("Age", "date", ".metadata.creationTimestamp")}}}));
  const JsonObject scale = {{"specReplicasPath", ".spec.replicas"},
                            {"statusReplicasPath", ".status.replicas"}};
  NOS_RETURN_IF_ERROR(
      Define(client, kMachineSets, {},
             {{"subresources", JsonObject{{"status", JsonObject()}, {"scale", scale}}},
              {"additionalPrinterColumns",
               JsonArray{Column("Wanted", "integer", ".spec.replicas"),
                         Column("Replicas", "integer", ".status.replicas")}}}));
  NOS_RETURN_IF_ERROR(Define(client, kMachines, {}, {}));
  const Json ns = JsonObject{{"apiVersion", "v1"},
                             {"kind", "Namespace"},
                             {"metadata", JsonObject{{"name", kInfraNamespace}}}};
  return OrThereAlready(client.Create(kube::kNamespaces, "", ns).status());
}

Json NodePoolObject(const PoolSpec& spec) {
  JsonObject body = {
      {"min", spec.min},
      {"max", spec.max},
      {"price", spec.price.ToString()},
      {"startSeconds", std::chrono::duration_cast<std::chrono::seconds>(spec.start).count()},
      {"nodeSelector", JsonObject{{kPoolLabel, spec.name}}},
      {"scaleTargetRef", JsonObject{{"apiVersion", ApiVersionOf(kMachineSets)},
                                    {"kind", kMachineSets.kind},
                                    {"namespace", kInfraNamespace},
                                    {"name", spec.name}}}};
  if (!spec.undescribed) DescribeNodes(spec, body);
  if (!spec.unnamed) body["deleteAnnotation"] = cluster::kDeleteMachine;
  return JsonObject{{"apiVersion", ApiVersionOf(kPoolResource)},
                    {"kind", kPoolResource.kind},
                    {"metadata", JsonObject{{"name", spec.name}}},
                    {"spec", std::move(body)}};
}

Json MachineSetObject(const PoolSpec& spec) {
  return JsonObject{{"apiVersion", ApiVersionOf(kMachineSets)},
                    {"kind", kMachineSets.kind},
                    {"metadata", Meta(spec.name)},
                    {"spec", JsonObject{{"replicas", spec.nodes}}}};
}

Json MachineObject(std::string_view name) {
  return JsonObject{{"apiVersion", ApiVersionOf(kMachines)},
                    {"kind", kMachines.kind},
                    {"metadata", Meta(name)},
                    {"spec", JsonObject()},
                    {"status", JsonObject{{"nodeRef", JsonObject{{"name", name}}}}}};
}

Result<PoolSpec> PoolSpecOf(const cluster::NodePool& node_pool, const gpu::Catalogue& catalogue) {
  const cluster::NodePool pool = cluster::WithTemplate(node_pool);
  PoolSpec spec;
  spec.name = pool.meta.name;
  if (!cluster::IsDescribed(pool)) {
    return Invalid(
        fmt::format("NodePool {}: spec.cpu and spec.memory: a virtual cluster makes its "
                    "nodes and has none to learn from: give both (and gpu)",
                    spec.name));
  }
  NodeSpec& node = spec.node;
  const std::string& model = pool.gpu.model.empty() ? pool.gpu.product : pool.gpu.model;
  if (pool.gpu.count > 0) {
    const Status known = FindModel(catalogue, model).status();
    if (!known.ok()) {
      return Invalid(fmt::format("NodePool {}: spec.gpu: {}", spec.name, known.message()));
    }
    if (pool.gpu.partitioning == cluster::SharingMode::kNone) {
      return Invalid(
          fmt::format("NodePool {}: spec.gpu.partitioning: a virtual cluster gives out no whole "
                      "GPUs: say mig, mps or hybrid",
                      spec.name));
    }
  }
  node.gpus.assign(static_cast<size_t>(pool.gpu.count), GpuSpec{model, {}});
  node.mps = pool.gpu.partitioning == cluster::SharingMode::kMps;
  node.hybrid = pool.gpu.partitioning == cluster::SharingMode::kHybrid;
  node.labels = pool.labels;
  node.taints = pool.taints;
  node.cpu = pool.resources.at("cpu");
  node.memory = pool.resources.at("memory");
  node.max_pods = static_cast<int>(WholeOr(pool.resources, "pods", node.max_pods));
  spec.min = spec.nodes = pool.min;
  spec.max = pool.max;
  spec.price = pool.price;
  spec.start = std::chrono::seconds(pool.start_seconds);
  spec.unnamed = pool.delete_annotation.empty() && !pool.target.name.empty();
  return spec;
}

}  // namespace nos::sim
