// Reads the GPUs of a node and their requested layouts.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/annotations/arrange.h"
#include "cluster/annotations/reported.h"
#include "cluster/device_interface.h"
#include "gpu/shares.h"

namespace nos::cluster {
namespace {

using gpu::LayoutTable;

std::string_view Lookup(const StringMap& map, std::string_view key) {
  const auto it = map.find(key);
  return it == map.end() ? std::string_view() : std::string_view(it->second);
}

std::string OldKey(std::string_view rest) { return std::string(kOldPrefix) + std::string(rest); }

const gpu::Model* FindModel(const gpu::Catalogue& catalogue, std::string_view name) {
  const gpu::Model* model = catalogue.FindByName(name);
  return model != nullptr ? model : catalogue.FindByProduct(name);
}

// For hybrid nodes, whose GPUs can have models of any sharing mode.
const gpu::Model* FindAnyModel(const gpu::Catalogue& catalogue, std::string_view name) {
  if (const gpu::Model* model = gpu::FindShares(name)) return model;
  if (const gpu::Model* model = catalogue.FindSharingModes(name)) return model;
  return catalogue.FindByName(name);
}

// Parses the state after the colon; true if the instance is used. A spec has no states. In a status
// the state is required: an instance without one must not count as free. Error: kInvalid.
Result<bool> ParseUsed(Family family, std::optional<std::string_view> state) {
  if (!state && family == Family::kSpec) return false;
  if (!state) return Invalid("an instance has no state, free or used");
  if (*state != "free" && *state != "used" && *state != "unknown") {
    return Invalid(fmt::format("'{}' is neither free nor used", *state));
  }
  return *state != "free";
}

// A status layout "3g.20gb@4:used,1g.5gb@0:free" or a spec layout "3g.20gb@4,1g.5gb@0". Error:
// kInvalid, also if the layout is not legal.
Result<std::vector<Instance>> ParseLayout(const gpu::Model& model, Family family,
                                          std::string_view text) {
  std::vector<Instance> instances;
  std::vector<gpu::Placement> placements;
  if (Trim(text).empty()) return instances;
  for (std::string_view part : Split(text, ',')) {
    part = Trim(part);
    const size_t colon = part.find(':');
    const bool stated = colon != std::string_view::npos;
    NOS_ASSIGN(const bool used,
               ParseUsed(family, stated ? std::optional(part.substr(colon + 1)) : std::nullopt));
    NOS_ASSIGN(const gpu::Placement placement, model.ParsePlacement(part.substr(0, colon)));
    placements.push_back(placement);
    instances.push_back({placement, used, ""});
  }
  if (!OccupancyOf(model, placements)) {
    return Invalid(fmt::format("these instances may not lie on one {}", model.name()));
  }
  std::sort(instances.begin(), instances.end(),
            [](const Instance& a, const Instance& b) { return a.placement < b.placement; });
  return instances;
}

// Parses "3g.20gb@4=ml/train,1g.5gb@0=ml/serve". Ignores unreadable parts and holders of instances
// that are not in use.
void NameHolders(std::string_view text, Gpu& gpu) {
  if (Trim(text).empty()) return;
  for (const std::string_view part : Split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const auto placement = gpu.model->ParsePlacement(Trim(part.substr(0, equals)));
    if (!placement.ok()) continue;
    const auto held = std::ranges::find(gpu.instances, *placement, &Instance::placement);
    if (held != gpu.instances.end() && held->used) held->pod = Trim(part.substr(equals + 1));
  }
}

struct KnownCounts {
  ProfileCounts total, used;
};

// Error: kInvalid for a profile that the model does not have.
Result<KnownCounts> ResolveCounts(const gpu::Model& model, const ReportedGpu& reported) {
  KnownCounts counts{ProfileCounts(model.profiles().size()),
                     ProfileCounts(model.profiles().size())};
  for (const auto& [key, count] : reported.counts) {
    if (count.free + count.used == 0) continue;
    const auto profile = FindProfileByKey(model, key);
    if (!profile) return Invalid(fmt::format("{} has no profile '{}'", model.name(), key));
    counts.total[*profile] += count.free + count.used;
    counts.used[*profile] += count.used;
  }
  return counts;
}

// Error: kInvalid if no legal layout has these counts.
Result<std::vector<Instance>> AssumeStarts(const gpu::Model& model, KnownCounts counts) {
  const auto placements = Arrange(model, counts.total);
  if (!placements) {
    return Invalid(fmt::format("no layout of {} has the reported instances", model.name()));
  }
  std::vector<Instance> instances;
  for (const gpu::Placement& placement : *placements) {
    instances.push_back({placement, counts.used[placement.profile]-- > 0, ""});
  }
  return instances;
}

bool SameCounts(const gpu::Model& model, const std::vector<Instance>& instances,
                const Result<KnownCounts>& counts) {
  if (!counts.ok()) return false;
  ProfileCounts total(model.profiles().size()), used(model.profiles().size());
  for (const Instance& instance : instances) {
    ++total[instance.placement.profile];
    if (instance.used) ++used[instance.placement.profile];
  }
  return total == counts->total && used == counts->used;
}

class NodeReader {
 public:
  NodeReader(const Node& node, const gpu::Catalogue& catalogue)
      : labels_(node.meta.labels),
        mode_(SharingModeOf(node)),
        catalogue_(catalogue),
        reported_(ReadReported(node, kStatus)) {}

  NodeGpus Read() && {
    out_.managed = true;
    out_.whole = mode_ == SharingMode::kHybrid;
    out_.problems = reported_.problems;
    for (const int index : Indexes()) {
      const auto it = reported_.gpus.find(index);
      const ReportedGpu reported = it == reported_.gpus.end() ? ReportedGpu() : it->second;
      const gpu::Model* model = ModelOf(index, reported);
      if (model == nullptr) continue;
      Gpu gpu{
          .index = index, .model = model, .reported = reported.layout || !reported.counts.empty()};
      gpu.alternative = OtherModelOf(index, *model, reported);
      if (ReadInstances(reported, gpu)) out_.gpus.push_back(std::move(gpu));
    }
    // Problems quote annotations, which may be long, and end up in messages for every pending pod.
    for (std::string& problem : out_.problems) problem = Shortened(problem, kMaxProblem);
    return std::move(out_);
  }

 private:
  static constexpr Family kStatus = Family::kStatus;
  static constexpr size_t kMaxProblem = 300;  // bytes

  void Problem(std::string text) { out_.problems.push_back(std::move(text)); }
  void Problem(int gpu, std::string_view text) {
    out_.problems.push_back(fmt::format("GPU {}: {}", gpu, text));
  }

  std::set<int> Indexes() {
    std::set<int> indexes;
    for (const auto& [index, reported] : reported_.gpus) indexes.insert(index);
    const std::string_view label = Lookup(labels_, kCountLabel);
    const auto count = ParseInt(label);
    if (count && *count >= 0 && *count <= kMaxGpusPerNode) {
      for (int i = 0; i < *count; ++i) indexes.insert(i);
    } else if (!label.empty()) {
      Problem(fmt::format("label {}: '{}' is not a number of GPUs up to {}", kCountLabel, label,
                          kMaxGpusPerNode));
    } else if (indexes.empty()) {
      Problem(
          fmt::format("label {} is missing and no agent has reported GPUs: is GPU feature "
                      "discovery running on this node?",
                      kCountLabel));
    }
    return indexes;
  }

  const gpu::Model* ModelOf(int index, const ReportedGpu& reported) {
    if (mode_ == SharingMode::kHybrid) return NamedModel(index, reported.model);
    if (reported.model.empty()) return LabelledModel();
    if (mode_ == SharingMode::kMps) return SharedModel(index, reported.model);
    const gpu::Model* model = FindModel(catalogue_, reported.model);
    if (model == nullptr) {
      Problem(index, fmt::format("its model '{}' is not in the catalogue of MIG GPUs; add it to "
                                 "the catalogue file",
                                 reported.model));
    }
    return model;
  }

  // The model that the annotation names. Labels do not describe the sharing mode of a GPU on a
  // hybrid node.
  const gpu::Model* NamedModel(int index, std::string_view name) {
    if (name.empty()) return nullptr;  // the agent cannot read the GPU now, or has not read it yet
    const gpu::Model* model = FindAnyModel(catalogue_, name);
    if (model == nullptr) {
      Problem(index, fmt::format("its agent reports '{}', which is no model of the catalogue, no "
                                 "GPU-<GiB>GB+GPU+TIME-<n> and no MPS-<GiB>GB",
                                 name));
    }
    return model;
  }

  const gpu::Model* OtherModelOf(int index, const gpu::Model& model, const ReportedGpu& reported) {
    if (mode_ != SharingMode::kHybrid || reported.other_model.empty()) return nullptr;
    const gpu::Model* other = NamedModel(index, reported.other_model);
    // A resource must identify the model that it belongs to.
    if (other == nullptr || other->counted() != model.counted()) return other;
    Problem(index, fmt::format("it cannot be {} in place of {}", other->name(), model.name()));
    return nullptr;
  }

  const gpu::Model* SharedModel(int index, std::string_view name) {
    const gpu::Model* model = gpu::FindShares(name);
    if (model == nullptr) {
      Problem(index, fmt::format("its agent does not share it by MPS yet, but reports '{}'", name));
    }
    return model;
  }

  const gpu::Model* LabelledModel() {
    if (!labelled_.has_value()) {
      labelled_ = mode_ == SharingMode::kMps ? ModelOfMemory() : FindLabelledModel();
    }
    return *labelled_;
  }

  const gpu::Model* ModelOfMemory() {
    const std::string_view label = Lookup(labels_, kMemoryLabel);
    const auto mib = ParseInt(label);
    const gpu::Model* model = mib ? gpu::SharesOfMemory(*mib) : nullptr;
    if (model == nullptr) {
      Problem(fmt::format(
          "label {}: '{}' is not a GPU's memory in MiB, and no agent has reported it: is "
          "GPU feature discovery running on this node?",
          kMemoryLabel, label));
    }
    return model;
  }

  const gpu::Model* FindLabelledModel() {
    const std::string_view product = Lookup(labels_, kProductLabel);
    const gpu::Model* model = product.empty() ? nullptr : FindModel(catalogue_, product);
    if (product.empty()) {
      Problem(
          fmt::format("label {} is missing, so the GPU model is not known: is GPU feature "
                      "discovery running on this node?",
                      kProductLabel));
    } else if (model == nullptr) {
      Problem(
          fmt::format("label {}: '{}' is not in the catalogue of MIG GPUs; add it to the "
                      "catalogue file, or take label {} off the node",
                      kProductLabel, product, kPartitioningLabel));
    }
    return model;
  }

  // False if the instances of the GPU cannot be determined.
  bool ReadInstances(const ReportedGpu& reported, Gpu& gpu) {
    Result<std::vector<Instance>> instances = InstancesOf(*gpu.model, reported);
    if (!instances.ok()) {
      Problem(gpu.index, instances.status().message() + "; the GPU is left alone");
      return false;
    }
    gpu.instances = std::move(instances).value();
    if (!ApplyShareLimit(gpu)) {
      Problem(gpu.index, "too many kinds of shared GPUs are reported; the GPU is left alone");
      return false;
    }
    gpu.assumed_starts = !reported.layout && !gpu.instances.empty();
    if (reported.layout) NameHolders(reported.holders, gpu);
    return true;
  }

  // Applies a share limit that was lowered while pods ran: all used shares stay, and free ones up
  // to the limit. False if FindShares has too many models already to make one with that limit.
  static bool ApplyShareLimit(Gpu& gpu) {
    const int all = static_cast<int>(gpu.instances.size());
    if (!gpu.model->counted() || all <= gpu.model->max_instances()) return true;
    const auto used = std::ranges::count(gpu.instances, true, &Instance::used);
    const int most = std::max(gpu.model->max_instances(), static_cast<int>(used));
    const gpu::Model* model = gpu::FindShares(gpu.model->slots(), most);
    if (model == nullptr) return false;
    gpu.model = model;
    int left = most - static_cast<int>(used);
    std::erase_if(gpu.instances,
                  [&](const Instance& instance) { return !instance.used && left-- <= 0; });
    return true;
  }

  // A model with the same profiles whose limit admits the number of shares in the layout.
  static const gpu::Model& WithoutLimit(const gpu::Model& model, std::string_view layout) {
    const bool many =
        model.counted() && std::ranges::count(layout, ',') >= std::max(model.max_instances(), 1);
    return many ? gpu::SharesOf(model.slots(), gpu::kMaxClients) : model;
  }

  // Error: kInvalid. A report that is readable only in part is rejected as a whole: the missing
  // part may be an instance in use.
  Result<std::vector<Instance>> InstancesOf(const gpu::Model& model, const ReportedGpu& reported) {
    if (reported.damaged) return Invalid("a part of its report cannot be read");
    const Result<KnownCounts> counts = ResolveCounts(model, reported);
    if (reported.layout) {
      const std::string_view layout = *reported.layout;
      return ReadExact(WithoutLimit(model, layout), layout, reported, counts);
    }
    if (reported_.stray) return Invalid("an annotation that cannot be read may be about it");
    if (!counts.ok()) return counts.status();
    return AssumeStarts(model, *counts);
  }

  static Result<std::vector<Instance>> ReadExact(const gpu::Model& model, std::string_view text,
                                                 const ReportedGpu& reported,
                                                 const Result<KnownCounts>& counts) {
    Result<std::vector<Instance>> exact = ParseLayout(model, Family::kStatus, text);
    if (!exact.ok()) {
      return exact.status().Within(fmt::format("reported layout '{}'", text));
    }
    if (!reported.counts.empty() && !SameCounts(model, *exact, counts)) {
      return Invalid("the reported counts contradict the reported layout");
    }
    return exact;
  }

  const StringMap& labels_;
  const SharingMode mode_;
  const gpu::Catalogue& catalogue_;
  Reported reported_;
  std::optional<const gpu::Model*> labelled_;
  NodeGpus out_;
};

// The GPU's instances that can stay under `counts`, used ones first (or only used ones).
std::vector<gpu::Placement> Keepable(const Gpu& gpu, ProfileCounts counts, bool used_only) {
  std::vector<gpu::Placement> kept;
  for (const bool used : {true, false}) {
    if (!used && used_only) break;
    for (const Instance& instance : gpu.instances) {
      if (instance.used == used && counts[instance.placement.profile]-- > 0) {
        kept.push_back(instance.placement);
      }
    }
  }
  return kept;
}

// nullopt if the spec is damaged: a guess at its meaning could destroy instances.
std::optional<std::vector<gpu::Placement>> PlacementsOf(const Gpu& gpu, const ReportedGpu& spec) {
  const Result<KnownCounts> counts = ResolveCounts(*gpu.model, spec);
  if (!counts.ok()) return std::nullopt;
  if (spec.layout) {
    const auto exact = ParseLayout(*gpu.model, Family::kSpec, *spec.layout);
    if (!exact.ok()) return std::nullopt;
    std::vector<gpu::Placement> placements;
    ProfileCounts total(gpu.model->profiles().size());
    for (const Instance& instance : *exact) {
      placements.push_back(instance.placement);
      ++total[instance.placement.profile];
    }
    if (!spec.counts.empty() && total != counts->total) return std::nullopt;
    return placements;
  }
  // Used instances stay for now, even if the spec does not request them: their numbers are not
  // available to other shares.
  uint64_t numbers = 0;
  for (const Instance& instance : gpu.instances) {
    if (instance.used && gpu.model->counted()) numbers |= uint64_t{1} << instance.placement.start;
  }
  for (const bool used_only : {false, true}) {
    const std::vector<gpu::Placement> kept = Keepable(gpu, counts->total, used_only);
    if (auto placements = Arrange(*gpu.model, counts->total, kept, numbers)) return placements;
  }
  return Arrange(*gpu.model, counts->total, {}, numbers);
}

std::optional<TargetLayout> TargetOf(const Gpu& gpu, const ReportedGpu& spec) {
  if (auto placements = PlacementsOf(gpu, spec)) {
    return TargetLayout{gpu.index, gpu.model, *std::move(placements)};
  }
  if (gpu.alternative == nullptr) return std::nullopt;
  auto placements = PlacementsOf({.index = gpu.index, .model = gpu.alternative}, spec);
  if (!placements) return std::nullopt;
  return TargetLayout{gpu.index, gpu.alternative, *std::move(placements)};
}

std::string PlanId(const Node& node, std::string_view key) {
  const StringMap& annotations = node.meta.annotations;
  const std::string_view plan = Lookup(annotations, key);
  const std::optional<int64_t> id =
      ParsePlanId(!plan.empty() ? plan : Lookup(annotations, OldKey(key.substr(kPrefix.size()))));
  return id ? fmt::to_string(*id) : std::string();
}

}  // namespace

std::optional<gpu::Occupancy> Gpu::All() const {
  gpu::Occupancy on(*model);
  for (const Instance& instance : instances) {
    if (!on.Add(instance.placement)) return std::nullopt;
  }
  return on;
}

std::optional<gpu::Occupancy> Gpu::Used() const {
  gpu::Occupancy on(*model);
  for (const Instance& instance : instances) {
    if (instance.used && !on.Add(instance.placement)) return std::nullopt;
  }
  return on;
}

bool Gpu::MaySwitch() const {
  return alternative != nullptr && std::ranges::none_of(instances, &Instance::used);
}

void Gpu::Switch() {
  std::swap(model, alternative);
  instances.clear();
  assumed_starts = false;
}

gpu::LayoutId Gpu::UsedLayout() const {
  const auto used = Used();
  return used ? used->layout() : LayoutTable::kIllegal;
}

namespace {

// The agent of nos reports an MPS model for each GPU that it shares. Agents of other versions and
// Nebuly's device plugin do not.
bool ReportsShares(const Node& node) {
  const StringMap& all = node.meta.annotations;
  const std::string start = fmt::format("{}status-model-", kPrefix);
  for (auto at = all.lower_bound(start); at != all.end() && at->first.starts_with(start); ++at) {
    if (gpu::FindShares(Trim(at->second)) != nullptr) return true;
  }
  return false;
}

// An agent that supports hybrid nodes reports the other model of each GPU.
bool ReportsModes(const Node& node) {
  const std::string start = fmt::format("{}status-other-model-", kPrefix);
  const auto at = node.meta.annotations.lower_bound(start);
  return at != node.meta.annotations.end() && at->first.starts_with(start);
}

// True if the agent gives a GPU whole. On nodes with label "mig" it does so only if its
// configuration says so.
bool ReportsWholeGpus(const Node& node) {
  const StringMap& all = node.meta.annotations;
  const std::string start = fmt::format("{}status-model-", kPrefix);
  for (auto at = all.lower_bound(start); at != all.end() && at->first.starts_with(start); ++at) {
    if (at->second.find("+GPU") != std::string::npos) return true;  // gpu/modes.h
  }
  return false;
}

}  // namespace

std::string_view RequestedSharingMode(const Node& node) {
  const StringMap& labels = node.meta.labels;
  if (labels.contains(kPartitioningLabel)) return Lookup(labels, kPartitioningLabel);
  const std::string_view old = Lookup(labels, OldKey("gpu-partitioning"));
  if (old == "mig" || old == "mps" || old == "hybrid") return old;
  return Lookup(labels, OldKey("auto-mig-enabled")) == "true" ? "mig" : "";
}

bool ServesClaims(const Node& node) { return Lookup(node.meta.labels, kInterfaceLabel) == "dra"; }

SharingMode SharingModeOf(const Node& node) {
  if (ServesClaims(node)) return SharingMode::kNone;
  const std::string_view mode = RequestedSharingMode(node);
  if (mode == "mig") return ReportsWholeGpus(node) ? SharingMode::kHybrid : SharingMode::kMig;
  if (mode == "mps") return ReportsShares(node) ? SharingMode::kMps : SharingMode::kNone;
  if (mode == "hybrid") return ReportsModes(node) ? SharingMode::kHybrid : SharingMode::kNone;
  return SharingMode::kNone;
}

bool IsManaged(const Node& node) { return SharingModeOf(node) != SharingMode::kNone; }

NodeGpus ReadNodeGpus(const Node& node, const gpu::Catalogue& catalogue) {
  if (!IsManaged(node)) return {};
  return NodeReader(node, catalogue).Read();
}

std::vector<TargetLayout> ReadSpec(const Node& node, const NodeGpus& gpus) {
  const Reported spec = ReadReported(node, Family::kSpec);
  std::vector<TargetLayout> targets;
  for (const Gpu& gpu : gpus.gpus) {
    const auto it = spec.gpus.find(gpu.index);
    if (it == spec.gpus.end()) continue;
    if (auto target = TargetOf(gpu, it->second)) targets.push_back(*std::move(target));
  }
  return targets;
}

std::string SpecPlan(const Node& node) { return PlanId(node, kSpecPlan); }
std::string StatusPlan(const Node& node) { return PlanId(node, kStatusPlan); }

bool ReportTheSame(const Node& a, const Node& b) {
  const auto status_of = [](const Node& node) {
    StringMap status;
    for (const auto& [key, value] : node.meta.annotations) {
      if (key.starts_with("nos.nebuly.com/status-")) status.emplace(key, value);
    }
    return status;
  };
  return status_of(a) == status_of(b);
}

}  // namespace nos::cluster
