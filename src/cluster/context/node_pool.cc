#include "cluster/node_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cluster/fields.h"
#include "cluster/read_parts.h"
#include "cluster/resources.h"

namespace nos::cluster {
namespace {

constexpr size_t kMaxLabels = 64, kMaxTaints = 32, kMaxResources = 64;
constexpr size_t kMaxUrl = 2048, kMaxName = 253, kMaxLabelName = 63;
constexpr int kMaxTimeSlices = 7;
constexpr int64_t kMaxPods = 10'000;      // per node
constexpr int64_t kMaxPrice = 1'000'000;  // per hour

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Letters and digits, with "-", "_" and "." between them. Source: apimachinery validation
// IsQualifiedName, IsValidLabelValue.
bool IsLabelName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabelName && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) && std::ranges::all_of(text, [](char c) {
           return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}
bool IsLabelValue(std::string_view text) { return text.empty() || IsLabelName(text); }

// Source: apimachinery validation IsDNS1123Subdomain.
bool IsSubdomain(std::string_view text) {
  if (text.size() > kMaxName) return false;
  return std::ranges::all_of(Split(text, '.'), [](std::string_view part) {
    return IsLabelName(part) && std::ranges::all_of(part, [](char c) {
             return c == '-' || (IsAlphanumeric(c) && !(c >= 'A' && c <= 'Z'));
           });
  });
}

// "name" or "prefix/name".
bool IsLabelKey(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsLabelName(text);
  return IsSubdomain(text.substr(0, slash)) && IsLabelName(text.substr(slash + 1));
}

std::string Quoted(std::string_view text) { return fmt::format("'{}'", Shortened(text, 80)); }

void ReadWithin(Field& from, int32_t& to, int32_t least, int32_t most) {
  from.Read(to);
  if (to < least || to > most) from.Fail(fmt::format("must be from {} to {}", least, most));
}
auto Within(int32_t least, int32_t most) {
  return [=](Field& from, int32_t& to) { ReadWithin(from, to, least, most); };
}

void ReadLabels(Field& from, StringMap& to) {
  from.Read(to);
  if (to.size() > kMaxLabels) from.Fail(fmt::format("must be {} labels at most", kMaxLabels));
  for (const auto& [key, value] : to) {
    if (!IsLabelKey(key)) from.Fail(fmt::format("{} is no label's name", Quoted(key)));
    if (!IsLabelValue(value)) {
      from.Fail(fmt::format("{} is no label's value: letters, digits, '-', '_' and '.', {} at most",
                            Quoted(value), kMaxLabelName));
    }
  }
}

void ReadPoolTaint(Field& from, Taint& to) {
  ReadTaint(from, to);
  if (!IsLabelKey(to.key)) from.Fail(fmt::format("key {} is no taint's key", Quoted(to.key)));
  if (!IsLabelValue(to.value)) from.Fail(fmt::format("value {} is no taint's", Quoted(to.value)));
  if (to.effect != "NoSchedule" && to.effect != "PreferNoSchedule" && to.effect != "NoExecute") {
    from.Fail(fmt::format("effect {} is none of NoSchedule, PreferNoSchedule, NoExecute",
                          Quoted(to.effect)));
  }
}

void ReadTaints(Field& from, std::vector<Taint>& to) {
  from.Read(to, ReadPoolTaint);
  if (to.size() > kMaxTaints) from.Fail(fmt::format("must be {} taints at most", kMaxTaints));
}

void ReadPartitioning(Field& from, SharingMode& to) {
  std::string text = "none";
  from.Read(text);
  using enum SharingMode;
  for (const SharingMode each : {kNone, kMig, kMps, kHybrid}) {
    if (NameOf(each) != text) continue;
    to = each;
    return;
  }
  from.Fail(fmt::format("{} is none of none, mig, mps, hybrid", Quoted(text)));
}

void ReadSignal(Field& from, PoolSignal& to) {
  std::string text;
  from.Read(text);
  using enum PoolSignal;
  for (const PoolSignal each : {kNone, kWaitingPods, kProvisioningRequest}) {
    if (NameOf(each) != text) continue;
    to = each;
    return;
  }
  from.Fail(fmt::format("{} is none of Pods, ProvisioningRequest", Quoted(text)));
}

void ReadPositive(Field& from, Quantity& to) {
  from.Read(to);
  if (to < Quantity()) from.Fail("must not be negative");
}

void ReadPrice(Field& from, Quantity& to) {
  ReadPositive(from, to);
  if (to > Quantity::FromValue(kMaxPrice)) {
    from.Fail(fmt::format("must be {} for an hour at most", kMaxPrice));
  }
}

void ReadGpus(Field& from, PoolGpus& to) {
  from.Members(At("model", to.model), At("product", to.product),
               At("count", to.count, Within(0, kMaxGpusPerNode)),
               At("partitioning", to.partitioning, ReadPartitioning),
               At("memory", to.memory, ReadPositive),
               At("timeSlices", to.time_slices, Within(0, kMaxTimeSlices)));
}

// Reads an amount of the resource `name`.
auto Resource(ResourceList& to, std::string_view name) {
  return [&to, name](Field& from) {
    if (!from.Present()) return;
    ReadPositive(from, to[std::string(name)]);
  };
}

void ReadTarget(Field& from, ScaleTarget& to) {
  from.Members(At("apiVersion", to.api_version), At("kind", to.kind), At("namespace", to.ns),
               At("name", to.name));
}

void ReadSpec(Field& spec, NodePool& to, ResourceList& beside) {
  ResourceList& own = to.resources;
  const auto read_gpus = [&](Field& gpu) {
    to.gpu_specified = gpu.Present();
    ReadGpus(gpu, to.gpu);
  };
  const auto read_taints = [&](Field& taints) {
    to.taints_specified = taints.Present();
    ReadTaints(taints, to.taints);
  };
  to.gpu_specified = to.taints_specified = false;
  spec.Members(At("gpu", read_gpus), At("cpu", Resource(own, "cpu")),
               At("memory", Resource(own, "memory")), At("pods", Resource(own, "pods")),
               At("resources", beside), At("labels", to.labels, ReadLabels),
               At("taints", read_taints), At("min", to.min, Within(0, kMaxPoolNodes)),
               At("max", to.max, Within(0, kMaxPoolNodes)), At("price", to.price, ReadPrice),
               At("startSeconds", to.start_seconds, Within(0, kMaxStartSeconds)),
               At("scaleTargetRef", to.target, ReadTarget),
               At("webhook", [&](Field& webhook) { webhook.Members(At("url", to.webhook)); }),
               At("signal", to.signal, ReadSignal), At("deleteAnnotation", to.delete_annotation),
               At("nodeSelector", to.node_selector, ReadLabels));
}

// Reads status.template without validation: IsUsable checks it later, so a faulty template does not
// make the NodePool unreadable.
void ReadTemplate(Field& from, std::optional<NodeTemplate>& to) {
  if (!from.Present()) return;
  NodeTemplate& known = to.emplace();
  ResourceList own;
  const auto amount = [&own](std::string_view name) {
    return [&own, name](Field& field) {
      if (field.Present()) field.Read(own[std::string(name)]);
    };
  };
  from.Members(At("gpu", known.gpu, ReadGpus), At("cpu", amount("cpu")),
               At("memory", amount("memory")), At("pods", amount("pods")),
               At("resources", known.resources), At("labels", known.labels),
               At("taints", known.taints, [](Field& taint, Taint& one) { ReadTaint(taint, one); }));
  known.resources.merge(own);
}

void ReadPoolStatus(Field& from, NodePool& to) {
  from.Members(At("nodes", to.nodes), At("wanted", to.wanted), At("asked", to.asked),
               At("failures", to.failures), At("closedUntil", to.closed_until),
               At("conditions", to.conditions, ReadCondition),
               At("template", [&](Field& known) { ReadTemplate(known, to.learned); }));
}

Status Wrong(std::string_view field, std::string_view what) {
  return Invalid(fmt::format("spec.{}: {}", field, what));
}

Status CheckGpus(const PoolGpus& gpu) {
  if (gpu.count == 0) {
    const bool none = gpu.model.empty() && gpu.product.empty();
    return none ? Status::Ok() : Wrong("gpu.count", "must be at least 1 where GPUs are named");
  }
  if (gpu.model.empty() == gpu.product.empty()) {
    return Wrong("gpu",
                 "needs either model (as in the catalogue) or product (as in the label "
                 "nvidia.com/gpu.product), and not both");
  }
  const std::string& name = gpu.model.empty() ? gpu.product : gpu.model;
  if (!IsLabelValue(name)) {
    return Wrong(gpu.model.empty() ? "gpu.product" : "gpu.model",
                 fmt::format("{} is no label's value", Quoted(name)));
  }
  if (gpu.time_slices > 0 && gpu.partitioning != SharingMode::kHybrid) {
    return Wrong("gpu.timeSlices", "is for partitioning: hybrid only");
  }
  return Status::Ok();
}

Status CheckResources(const ResourceList& resources) {
  if (resources.size() > kMaxResources) {
    return Wrong("resources", fmt::format("must be {} at most", kMaxResources));
  }
  for (const auto& [name, amount] : resources) {
    if (!IsLabelKey(name)) {
      return Wrong("resources", fmt::format("{} is no resource's name", Quoted(name)));
    }
    if (name == kWholeGpuResource || IsSliceResource(name)) {
      return Wrong("resources",
                   fmt::format("{} follows from gpu: take it out of here", Quoted(name)));
    }
    if ((name == "cpu" || name == "memory") && amount <= Quantity()) {
      return Wrong(name, "must be more than 0, or left out to learn it from a node");
    }
    if (name == "pods" && (amount.Value() < 1 || amount.Value() > kMaxPods)) {
      return Wrong("pods", fmt::format("must be from 1 to {}", kMaxPods));
    }
  }
  return Status::Ok();
}

// A URL with http or https, a host, and no credentials.
bool IsUrl(std::string_view url) {
  const bool https = url.starts_with("https://");
  if (url.size() > kMaxUrl || (!https && !url.starts_with("http://"))) return false;
  url.remove_prefix(https ? 8 : 7);
  const std::string_view host = url.substr(0, url.find_first_of("/?#"));
  const bool plain =
      std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f && c != '\\'; });
  return plain && !host.empty() && host.front() != ':' && host.find('@') == std::string_view::npos;
}

Status CheckTarget(const NodePool& pool) {
  const ScaleTarget& target = pool.target;
  const bool scales = !target.name.empty() || !target.kind.empty();
  const bool hook = !pool.webhook.empty(), signals = pool.signal != PoolSignal::kNone;
  if (scales + hook + signals != 1) {
    return Invalid(
        "spec: needs one of scaleTargetRef (an object with the subresource scale), webhook.url, "
        "and signal (to another autoscaler), and no two of them");
  }
  if (signals) {
    return pool.delete_annotation.empty()
               ? Status::Ok()
               : Wrong("deleteAnnotation",
                       "is for scaleTargetRef: nodes of a pool with a signal "
                       "are removed by the component that creates them");
  }
  if (!scales) {
    if (!IsUrl(pool.webhook)) {
      return Wrong("webhook.url", fmt::format("{} is no http:// or https:// address with a host "
                                              "and without a password",
                                              Quoted(pool.webhook)));
    }
    return pool.delete_annotation.empty()
               ? Status::Ok()
               : Wrong("deleteAnnotation", "is for scaleTargetRef: a webhook receives the node");
  }
  const size_t slash = target.api_version.find('/');
  const bool grouped = slash != std::string::npos;
  if (!IsSubdomain(target.api_version.substr(0, slash)) ||
      (grouped && !IsSubdomain(target.api_version.substr(slash + 1)))) {
    return Wrong("scaleTargetRef.apiVersion",
                 fmt::format("{} is none, such as apps/v1", Quoted(target.api_version)));
  }
  if (!IsLabelName(target.kind)) {
    return Wrong("scaleTargetRef.kind", fmt::format("{} is none", Quoted(target.kind)));
  }
  if (!IsSubdomain(target.name)) {
    return Wrong("scaleTargetRef.name", fmt::format("{} is no object's", Quoted(target.name)));
  }
  if (!target.ns.empty() && !IsSubdomain(target.ns)) {
    return Wrong("scaleTargetRef.namespace", fmt::format("{} is none", Quoted(target.ns)));
  }
  if (!pool.delete_annotation.empty() && !IsLabelKey(pool.delete_annotation)) {
    return Wrong("deleteAnnotation", fmt::format("{} is no annotation's name, such as {}",
                                                 Quoted(pool.delete_annotation), kDeleteMachine));
  }
  return Status::Ok();
}

// New nodes must match the node selector of the NodePool as well.
Status AddSelectorToLabels(NodePool& pool) {
  if (pool.node_selector.empty()) {
    return Wrong("nodeSelector",
                 "is missing: name a label that the nodes of this pool have, and no others");
  }
  for (const auto& [key, value] : pool.node_selector) {
    const auto [at, fresh] = pool.labels.try_emplace(key, value);
    if (at->second != value) {
      return Wrong("labels", fmt::format("{} is {} here and {} in nodeSelector: new nodes would "
                                         "not be the pool's",
                                         Quoted(key), Quoted(at->second), Quoted(value)));
    }
  }
  return Status::Ok();
}

// Planning uses the mode of the label.
Status CheckPartitioningLabel(const NodePool& pool) {
  const auto label = pool.labels.find(kPartitioningLabel);
  if (label == pool.labels.end() || label->second == NameOf(pool.gpu.partitioning)) {
    return Status::Ok();
  }
  if (pool.learns && !pool.gpu_specified) return Status::Ok();
  return Wrong("gpu.partitioning",
               fmt::format("is {}, but label {} is {}: say the same", NameOf(pool.gpu.partitioning),
                           kPartitioningLabel, Quoted(label->second)));
}

Status Check(NodePool& pool) {
  if (!IsSubdomain(pool.meta.name)) return Invalid("metadata.name: is missing, or no object's");
  NOS_RETURN_IF_ERROR(CheckGpus(pool.gpu));
  NOS_RETURN_IF_ERROR(CheckResources(pool.resources));
  if (pool.max < 0) return Wrong("max", "is missing: the most nodes that there may be");
  if (pool.max < pool.min) {
    return Wrong("max", fmt::format("must be at least min ({})", pool.min));
  }
  NOS_RETURN_IF_ERROR(CheckTarget(pool));
  NOS_RETURN_IF_ERROR(AddSelectorToLabels(pool));
  return CheckPartitioningLabel(pool);
}

}  // namespace

std::string_view NameOf(SharingMode partitioning) {
  switch (partitioning) {
    case SharingMode::kMig:
      return "mig";
    case SharingMode::kMps:
      return "mps";
    case SharingMode::kHybrid:
      return "hybrid";
    case SharingMode::kNone:
      break;
  }
  return "none";
}

std::string_view NameOf(PoolSignal signal) {
  switch (signal) {
    case PoolSignal::kWaitingPods:
      return "Pods";
    case PoolSignal::kProvisioningRequest:
      return "ProvisioningRequest";
    case PoolSignal::kNone:
      break;
  }
  return "";
}

bool IsOf(const NodePool& pool, const Node& node) {
  return !pool.node_selector.empty() && std::ranges::all_of(pool.node_selector, [&](auto& label) {
    const auto found = node.meta.labels.find(label.first);
    return found != node.meta.labels.end() && found->second == label.second;
  });
}

bool IsUsable(const NodeTemplate& known) {
  const bool nameless = known.gpu.model.empty() && known.gpu.product.empty();
  const bool whole = known.gpu.partitioning == SharingMode::kNone;
  return CheckResources(known.resources).ok() && known.resources.contains("cpu") &&
         known.resources.contains("memory") &&
         std::ranges::all_of(known.resources,
                             [](const auto& item) { return item.second > Quantity(); }) &&
         ((nameless && whole) || CheckGpus(known.gpu).ok()) &&
         known.labels.size() <= kMaxLearnedLabels && !known.labels.contains(kPartitioningLabel) &&
         std::ranges::all_of(known.labels,
                             [](const auto& label) {
                               return IsLabelKey(label.first) && IsLabelValue(label.second);
                             }) &&
         known.taints.size() <= kMaxTaints &&
         std::ranges::all_of(known.taints, [](const Taint& taint) {
           return IsLabelKey(taint.key) && IsLabelValue(taint.value) &&
                  (taint.effect == "NoSchedule" || taint.effect == "NoExecute");
         });
}

int64_t MilliPriceOf(const NodePool& pool) { return pool.price.MilliValue(); }

Status ReadNodePool(JsonSource json, NodePool& to) {
  to = NodePool();
  to.max = -1;  // not specified
  ResourceList beside;
  NOS_RETURN_IF_ERROR(ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to.meta, ReadMeta),
                 At("spec", [&](Field& spec) { ReadSpec(spec, to, beside); }),
                 At("status", [&](Field& status) { ReadPoolStatus(status, to); }));
  }));
  for (const auto& [name, amount] : beside) {
    if (name == "cpu" || name == "memory" || name == "pods") {
      return Wrong("resources", fmt::format("{} has a field of its own: spec.{}", Quoted(name),
                                            Shortened(name, 80)));
    }
    to.resources[name] = amount;
  }
  to.learns = !to.resources.contains("cpu") || !to.resources.contains("memory");
  if (!to.learns) to.resources.try_emplace("pods", kDefaultPods);
  if (to.learned && !IsUsable(*to.learned)) to.learned = NodeTemplate();
  return Check(to);
}

}  // namespace nos::cluster
