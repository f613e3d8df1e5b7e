#include "quota/charge.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "cluster/annotations.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"

namespace nos::quota {
namespace {

using cluster::ResourceId;

constexpr std::string_view kMpsPrefix = "nvidia.com/gpu-";
constexpr std::string_view kModel = "nos.nebuly.com/status-model-";
constexpr std::string_view kLayout = "nos.nebuly.com/status-layout-";
constexpr std::string_view kOtherModel = "nos.nebuly.com/status-other-model-";
constexpr int64_t kMaxGb = 1'000'000;  // of one GPU; rejects absurd labels
constexpr int64_t kMaxReplicas = 10'000;

// Parses and removes the leading number of `text`. Absent: no number, or above kMaxGb.
std::optional<int64_t> TakeNumber(std::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseInt(text.substr(0, end));
  if (end == 0 || !number || *number > kMaxGb) return std::nullopt;
  text.remove_prefix(end);
  return number;
}

bool Take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

// Memory in a MIG profile name: "1g.5gb" is 5, "1g.10gb.me" is 10. An MPS share of a MIG instance
// counts its part, rounded up: "3g.20gb.mps3" is 7. Other names count 0.
int64_t GbOfProfile(std::string_view profile) {
  if (!TakeNumber(profile) || !Take(profile, "g.")) return 0;
  const auto gb = TakeNumber(profile);
  if (!gb || !Take(profile, "gb")) return 0;
  if (!Take(profile, ".mps")) return *gb;
  const auto parts = TakeNumber(profile);
  return parts && *parts > 0 && profile.empty() ? (*gb + *parts - 1) / *parts : 0;
}

// Memory in the name of an MPS share: "10gb" is 10. Other names count 0.
int64_t GbOfShare(std::string_view share) {
  const auto gb = TakeNumber(share);
  return gb && share == "gb" ? *gb : 0;
}

int64_t GbOf(std::string_view resource, const GpuWorth& worth) {
  if (Take(resource, cluster::kMigResourcePrefix)) return GbOfProfile(resource);
  if (resource == cluster::kWholeGpuResource) return worth.whole;
  if (resource == gpu::kTimeSlice) return worth.time_slice;
  return Take(resource, kMpsPrefix) ? GbOfShare(resource) : 0;
}

std::optional<int64_t> LabelNumber(const cluster::Node& node, std::string_view key, int64_t most) {
  const auto found = node.meta.labels.find(key);
  if (found == node.meta.labels.end()) return std::nullopt;
  const auto number = ParseInt(found->second);
  if (!number || *number < 1 || *number > most) return std::nullopt;
  return number;
}

// True if the node has a GPU of this index: by the label that counts its GPUs, else because the
// agent reports its layout.
bool HasGpu(const cluster::Node& node, std::string_view index) {
  const auto number = ParseInt(index);
  if (!number || *number < 0) return false;
  const auto count = LabelNumber(node, cluster::kCountLabel, cluster::kMaxGpusPerNode);
  if (count) return *number < *count;
  return node.meta.annotations.contains(fmt::format("{}{}", kLayout, index));
}

// Calls `visit` with the name of each model that the node's agent reports in annotations, and of
// the alternative model of each GPU. An intruder who has the agent's token may write annotations of
// GPUs that do not exist.
template <typename Visit>
void ForEachModel(const cluster::Node& node, Visit visit) {
  const auto& annotations = node.meta.annotations;
  for (const std::string_view key : {kModel, kOtherModel}) {
    for (auto at = annotations.lower_bound(key);
         at != annotations.end() && at->first.starts_with(key); ++at) {
      if (HasGpu(node, std::string_view(at->first).substr(key.size()))) visit(at->second);
    }
  }
}

// The largest model that the agent reads through NVML, but no more than the product in the label
// has, because agents cannot write labels.
std::optional<int64_t> GbOfModel(const cluster::Node& node) {
  const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
  int64_t most = 0;
  ForEachModel(node, [&](std::string_view name) {
    const gpu::Model* model = catalogue.FindByName(name);
    if (model == nullptr) model = catalogue.FindSharingModes(name);
    if (model != nullptr) most = std::max<int64_t>(most, model->memory_gib());
  });
  const auto product = node.meta.labels.find(cluster::kProductLabel);
  if (product != node.meta.labels.end()) {
    const gpu::Model* model = catalogue.FindByProduct(product->second);
    if (model != nullptr)
      most = most == 0 ? model->memory_gib() : std::min<int64_t>(most, model->memory_gib());
  }
  return most > 0 ? std::optional(most) : std::nullopt;
}

// Parses "MINE-96GB+GPU+TIME-4" to 4. Reads the name only, because a GPU product from a user's
// catalogue file need not be in the built-in catalogue. 0: no time slices in the name.
int64_t TimeSlicesIn(std::string_view model) {
  constexpr std::string_view kPart = "+TIME-";
  const size_t at = model.rfind(kPart);
  if (at == std::string_view::npos) return 0;
  const auto count = ParseInt(model.substr(at + kPart.size()));
  return count && *count > 1 && *count <= gpu::kMaxTimeSlices ? *count : 0;
}

// Fewest time slices per GPU on a hybrid node, 1 if GPUs have none. While no GPU can be read,
// assumes the maximum: assuming fewer would inflate the charges of running pods, and their quota
// could evict pods for it.
int64_t TimeSlicesOf(const cluster::Node& node) {
  int64_t fewest = 0;
  bool reported = false;
  ForEachModel(node, [&](std::string_view name) {
    reported = true;
    const int64_t count = TimeSlicesIn(name);
    if (count > 0) fewest = fewest == 0 ? count : std::min(fewest, count);
  });
  if (!reported && cluster::RequestedSharingMode(node) == "hybrid") return gpu::kMaxTimeSlices;
  return std::max<int64_t>(fewest, 1);
}

int64_t DivideUp(int64_t amount, int64_t by) { return (amount + by - 1) / by; }

}  // namespace

GpuWorth GpuWorthOf(const cluster::Node* node, const ChargeRules& rules) {
  if (node == nullptr) {
    return {rules.gpu_memory_gb,
            rules.time_slice_gb > 0 ? rules.time_slice_gb : rules.gpu_memory_gb};
  }
  constexpr int64_t kMibPerGb = 1024;
  const auto mib = LabelNumber(*node, "nvidia.com/gpu.memory", kMaxGb * kMibPerGb);
  const int64_t gpu =
      mib ? (*mib + kMibPerGb / 2) / kMibPerGb : GbOfModel(*node).value_or(rules.gpu_memory_gb);
  const int64_t replicas = LabelNumber(*node, "nvidia.com/gpu.replicas", kMaxReplicas).value_or(1);
  // The NVIDIA device plugin may advertise time slices under the name of whole GPUs
  // (renameByDefault: false).
  const int64_t whole = DivideUp(gpu, replicas);
  return {whole, DivideUp(whole, TimeSlicesOf(*node))};
}

bool DependsOnNode(const cluster::Pod& pod) {
  const cluster::ResourceList requests = cluster::PodRequests(pod);
  return requests.contains(cluster::kWholeGpuResource) || requests.contains(gpu::kTimeSlice) ||
         !pod.claims.empty();
}

void Add(const std::map<std::string, int64_t>& counts, Amounts& to) {
  Amounts added;
  for (const auto& [resource, count] : counts) {
    added.Set(cluster::InternResource(resource), count);
  }
  to.Add(added);
}

namespace {

void AddMemory(const GpuWorth& worth, Amounts& to) {
  Amount memory = 0;
  for (const auto& [id, amount] : to.entries()) {
    if (id > cluster::kPods) memory += amount * GbOf(cluster::ResourceName(id), worth);
  }
  if (memory == 0) return;
  Amounts of_gpus;
  of_gpus.Set(cluster::InternResource(kGpuMemory), memory);
  to.Add(of_gpus);
}

}  // namespace

Amounts ChargeParts::Total() const {
  Amounts total = own;
  for (const auto& [key, amounts] : claims) total.Add(amounts);
  return total;
}

Amounts ChargeParts::TakeNew(std::set<std::string>& counted) const {
  Amounts total = own;
  for (const auto& [key, amounts] : claims) {
    if (counted.insert(key).second) total.Add(amounts);
  }
  return total;
}

ChargeParts ChargePartsOf(const cluster::Pod& pod, const cluster::Node* node,
                          const ChargeRules& rules) {
  ChargeParts charge;
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  for (const auto& [id, amount] : requests.entries()) {
    if (amount > 0 && id != cluster::kUnknownResource) charge.own.Set(id, amount);
  }
  charge.own.Set(cluster::kPods, 1);
  if (rules.claims != nullptr && !pod.claims.empty()) charge.claims = rules.claims->Of(pod);
  const GpuWorth worth = GpuWorthOf(node, rules);
  AddMemory(worth, charge.own);
  for (auto& [key, amounts] : charge.claims) AddMemory(worth, amounts);
  return charge;
}

Amounts ChargeOf(const cluster::Pod& pod, const cluster::Node* node, const ChargeRules& rules) {
  return ChargePartsOf(pod, node, rules).Total();
}

}  // namespace nos::quota
