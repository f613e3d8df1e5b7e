#include "planning/slice_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "cluster/resources.h"
#include "cluster/selectors.h"
#include "gpu/product.h"
#include "planning/planner.h"
#include "scheduling/pod_kind.h"

namespace nos::planning {
namespace {

std::set<const gpu::Model*> ModelsFor(const cluster::Pod& pod,
                                      const cluster::ClusterSnapshot& snapshot) {
  std::set<const gpu::Model*> models;
  for (size_t n = 0; n < snapshot.size(); ++n) {
    const cluster::NodeInfo& info = snapshot.node(n);
    if (info.gpus.gpus.empty() || !cluster::SelectsNode(pod, *info.node)) continue;
    for (const cluster::Gpu& gpu : info.gpus.gpus) {
      models.insert(gpu.model);
      if (gpu.alternative != nullptr) models.insert(gpu.alternative);
    }
  }
  return models;
}

bool MayHaveShares(const cluster::Pod& pod, bool shares_need_host_ipc) {
  return pod.host_ipc || !shares_need_host_ipc;
}

double Part(int of, int whole) { return static_cast<double>(of) / std::max(whole, 1); }

// Accepts "H100-80GB" also for "H100-80GB+GPU+TIME-4" (gpu/modes.h).
bool IsAllowed(const gpu::Model& model, const cluster::GpuRequirements& need) {
  return need.models.empty() || std::ranges::any_of(need.models, [&](const std::string& name) {
           return model.name() == name || model.name().starts_with(name + "+");
         });
}

// Whole GPUs and time slices must be requested by name, because the name does not determine their
// memory. The same applies to parts of instances, which isolate less than instances and cost more
// than shares.
bool IsByNameOnly(const gpu::Profile& profile) {
  return gpu::IsPlain(profile) || gpu::IsPartResource(profile.resource_name);
}

bool Meets(const gpu::Model& model, const gpu::Profile& profile,
           const cluster::GpuRequirements& need) {
  if (IsByNameOnly(profile)) return false;
  // MPS shares have no multiprocessors of their own; their share of memory is taken as an estimate.
  const int64_t compute = model.counted() ? 1000LL * profile.slots / model.slots()
                                          : 1000LL * profile.compute / model.compute_slices();
  return IsAllowed(model, need) && profile.memory_mib >= need.memory_mib &&
         compute >= need.compute_milli && !(need.isolated && model.counted());
}

double CostOf(const gpu::Model& model, const gpu::Profile& profile) {
  const double memory = Part(profile.slots, model.slots());
  const double compute = model.counted() ? 0 : Part(profile.compute, model.compute_slices());
  return std::max(memory, compute) * model.memory_gib();
}

}  // namespace

namespace {

// True if every model that offers the resource meets the requirements.
bool AllMeet(const std::set<const gpu::Model*>& models, const std::string& resource,
             const cluster::GpuRequirements& need) {
  return std::ranges::all_of(models, [&](const gpu::Model* model) {
    const auto profile = model->FindProfile(resource);
    return !profile || !model->Allows(*profile) || Meets(*model, model->profile(*profile), need);
  });
}

}  // namespace

std::vector<SliceKind> SlicesFor(const cluster::GpuRequirements& need, const cluster::Pod& pod,
                                 const cluster::ClusterSnapshot& snapshot,
                                 bool shares_need_host_ipc) {
  const std::set<const gpu::Model*> models = ModelsFor(pod, snapshot);
  std::map<std::string, SliceKind> kinds;
  for (const gpu::Model* model : models) {
    if (model->counted() && !MayHaveShares(pod, shares_need_host_ipc)) continue;
    for (size_t p = 0; p < model->profiles().size(); ++p) {
      const auto id = static_cast<gpu::ProfileId>(p);
      const gpu::Profile& profile = model->profile(id);
      if (!model->Allows(id) || !Meets(*model, profile, need)) continue;
      if (!AllMeet(models, profile.resource_name, need)) continue;
      SliceKind kind{profile.resource_name, CostOf(*model, profile), model->name()};
      const auto [at, fresh] = kinds.try_emplace(kind.resource, kind);
      if (std::tie(kind.cost, kind.model) < std::tie(at->second.cost, at->second.model)) {
        at->second = std::move(kind);
      }
      if (model->counted()) break;  // larger shares only cost more
    }
  }
  std::vector<SliceKind> sorted;
  sorted.reserve(kinds.size());
  for (auto& [resource, kind] : kinds) sorted.push_back(std::move(kind));
  // At equal cost, plain profiles come before those with extra engines, whose names are longer.
  std::ranges::stable_sort(sorted, {}, [](const SliceKind& kind) {
    return std::tuple(kind.cost, kind.resource.size(), kind.resource);
  });
  return sorted;
}

namespace {

bool AsksForGpus(const cluster::Container& container) {
  const auto some = [](const cluster::ResourceList& list) {
    return std::ranges::any_of(list, [](const auto& entry) {
      const auto& [name, amount] = entry;
      return amount.Value() > 0 &&
             (cluster::IsSliceResource(name) || name == cluster::kWholeGpuResource);
    });
  };
  return some(container.requests) || some(container.limits);
}

cluster::Pod Asking(cluster::Pod pod, size_t container, const std::string& resource) {
  // Ignores scheduling gates, which delay the pod but do not restrict its node. If the pod has a
  // node already, only this node is tried.
  pod.scheduling_gates.clear();
  if (!pod.node_name.empty()) {
    pod.node_selector["kubernetes.io/hostname"] = std::exchange(pod.node_name, "");
  }
  cluster::Container& to = pod.containers.at(container);
  to.limits[resource] = to.requests[resource] = Quantity::FromValue(1);
  return pod;
}

// nullopt if the time limit expired.
std::optional<SliceChoice> Choose(const std::vector<SliceKind>& kinds, const cluster::Pod& pod,
                                  size_t container, const cluster::ClusterSnapshot& snapshot,
                                  const scheduling::FrameworkChoice& frameworks,
                                  const PlanOptions& options, std::set<std::string>* full) {
  SliceChoice choice;
  for (const SliceKind& kind : kinds) {
    const std::vector<std::shared_ptr<const cluster::Pod>> waiting = {
        std::make_shared<const cluster::Pod>(Asking(pod, container, kind.resource))};
    const std::string alike = full == nullptr ? "" : scheduling::KindOf(*waiting.front());
    if (full != nullptr && full->contains(alike)) {
      choice.passed_over.push_back(kind.resource);
      continue;
    }
    const Plan plan = MakePlan(snapshot, waiting, frameworks, options);
    if (plan.placed == 1) {
      choice.resource = kind.resource;
      choice.node = plan.pods.front().node;
      for (const AssignedDevice& device : plan.pods.front().devices) {
        choice.instances.push_back({device.gpu, device.placement, device.model});
      }
      return choice;
    }
    choice.passed_over.push_back(kind.resource);
    if (options.out_of_time && options.out_of_time()) return std::nullopt;
    if (full != nullptr) full->insert(alike);
  }
  choice.resource = kinds.front().resource;
  choice.passed_over.clear();
  return choice;
}

// The explanation if no slice meets the requirements.
std::string NoneIsEnough(const cluster::GpuRequirements& need, const cluster::Pod& pod,
                         const cluster::ClusterSnapshot& snapshot, bool shares_need_host_ipc) {
  const bool may_share = MayHaveShares(pod, shares_need_host_ipc);
  std::tuple<int, std::string> largest;
  bool shares = false, met = false;
  std::set<std::string> others;  // products that the requirements exclude
  for (const gpu::Model* model : ModelsFor(pod, snapshot)) {
    if (!IsAllowed(*model, need)) {
      others.insert(model->counted() ? model->name() : gpu::ProductOf(model->name()));
      continue;
    }
    shares = shares || model->counted();
    for (size_t p = 0; p < model->profiles().size(); ++p) {
      const auto id = static_cast<gpu::ProfileId>(p);
      if (!model->Allows(id)) continue;
      if (model->counted() && (need.isolated || !may_share)) continue;
      if (IsByNameOnly(model->profile(id))) continue;
      met = met || Meets(*model, model->profile(id), need);
      const int mib = model->profile(id).memory_mib;
      largest = std::max(
          largest,
          std::tuple(mib, model->counted() ? model->name() : gpu::ProductOf(model->name())));
    }
  }
  const auto& [mib, model] = largest;
  std::string text = fmt::format(
      "no slice of GPUs that nos divides, on nodes that the pod may go to, meets the need ({} MiB, "
      "{}/1000 of a GPU's compute{}{})",
      need.memory_mib, need.compute_milli, need.isolated ? ", isolated" : "",
      need.models.empty() ? "" : ", of the models named");
  if (mib > 0) text += fmt::format("; the largest is {} MiB ({})", mib, model);
  if (!others.empty()) {
    text += fmt::format("; not named by {} are {}", cluster::kNeedModels,
                        Shortened(Join({others.begin(), others.end()}, ", "), 300));
  }
  if (shares && !may_share && !need.isolated) {
    text += "; MPS shares are only for pods with hostIPC: true";
  }
  if (met) {
    text +=
        "; smaller slices of the same name on other GPUs are not chosen: name the nodes by a "
        "nodeSelector";
  }
  return text;
}

}  // namespace

std::string SliceChoice::Reason() const {
  if (node.empty()) return "the cheapest that meets the need; none has room now";
  std::string text = fmt::format("the cheapest that meets the need and has room now ({})", node);
  if (!passed_over.empty()) text += "; cheaper ones without room: " + Join(passed_over, ", ");
  return text;
}

NeedAnswer AnswerNeed(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options,
                      std::set<std::string>* full, bool shares_need_host_ipc) {
  NeedAnswer answer;
  const auto read = cluster::ReadGpuRequirements(pod.meta.annotations);
  if (!read.ok()) {
    answer.refusal = read.status().message();
    return answer;
  }
  const std::optional<cluster::GpuRequirements>& asked = read.value();
  if (!asked) return answer;
  const cluster::GpuRequirements& need = *asked;
  const std::string& wanted = need.container;
  const auto container = wanted.empty()
                             ? pod.containers.begin()
                             : std::ranges::find(pod.containers, wanted, &cluster::Container::name);
  if (container == pod.containers.end()) {
    answer.refusal = fmt::format("annotation {}: the pod has no container '{}'",
                                 cluster::kNeedContainer, Shortened(wanted, 100));
    return answer;
  }
  if (std::ranges::any_of(pod.containers, AsksForGpus) ||
      std::ranges::any_of(pod.init_containers, AsksForGpus)) {
    answer.warning =
        fmt::format("the pod asks for GPUs by name, too: {} is passed over", cluster::kNeedMemory);
    return answer;
  }
  answer.container = static_cast<size_t>(container - pod.containers.begin());
  const std::vector<SliceKind> kinds = SlicesFor(need, pod, snapshot, shares_need_host_ipc);
  if (kinds.empty()) {
    answer.refusal = NoneIsEnough(need, pod, snapshot, shares_need_host_ipc);
    return answer;
  }
  answer.choice = Choose(kinds, pod, answer.container, snapshot, frameworks, options, full);
  answer.unknown = !answer.choice;
  return answer;
}

cluster::Pod WithSlice(cluster::Pod pod, const NeedAnswer& answer) {
  if (!answer.choice) return pod;
  pod = Asking(std::move(pod), answer.container, answer.choice->resource);
  pod.promised = answer.choice->instances;
  return pod;
}

}  // namespace nos::planning
