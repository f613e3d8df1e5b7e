#include "cmd/audit/cluster_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "cluster/annotations.h"
#include "gpu/modes.h"
#include "gpu/product.h"
#include "gpu/shares.h"
#include "planning/planner.h"
#include "scheduling/pod_state.h"

namespace nos::cmd {
namespace {

using SharedNode = std::shared_ptr<const cluster::Node>;
using SharedPod = std::shared_ptr<const cluster::Pod>;

constexpr std::string_view kVendor = "nvidia.com/";
constexpr int kTimeSlices = 4;  // the chart's default
constexpr int kMaxShares = gpu::kMaxShares;
// More GPUs than any node has; a larger label is wrong.
constexpr int64_t kMaxGpusOfNode = 64;

bool RequestsGpus(const cluster::Pod& pod) {
  return std::ranges::any_of(cluster::PodRequests(pod), [](const auto& entry) {
    return entry.first.starts_with(kVendor) && entry.second.Value() > 0;
  });
}

int64_t AmountOf(const cluster::ResourceList& list, std::string_view name) {
  const auto found = list.find(std::string(name));
  return found == list.end() ? 0 : found->second.Value();
}

// From the label of GPU feature discovery, else from what the device plugin offers.
int64_t GpuCount(const cluster::Node& node) {
  const auto label = node.meta.labels.find(cluster::kCountLabel);
  const auto count = label == node.meta.labels.end() ? std::nullopt : ParseInt(label->second);
  const int64_t gpus = count.value_or(AmountOf(node.capacity, gpu::kWholeGpu));
  return std::clamp<int64_t>(gpus, 0, kMaxGpusOfNode);
}

const gpu::Model* ModelOf(const cluster::Node& node, const gpu::Catalogue& catalogue) {
  const auto label = node.meta.labels.find(cluster::kProductLabel);
  return label == node.meta.labels.end() ? nullptr : catalogue.FindByProduct(label->second);
}

// A GPU of the model that may be used in every mode. Its model is null if no such GPU exists.
cluster::Gpu Shareable(const gpu::Model& model, int index, const gpu::Catalogue& catalogue) {
  gpu::SharingModes modes{.mig = &model, .memory_gib = model.memory_gib(), .whole = true};
  modes.time_slices = std::min(kTimeSlices, gpu::MostTimeSlices(modes));
  cluster::Gpu gpu;
  gpu.index = index;
  gpu.model = catalogue.FindSharingModes(gpu::NameOf(modes));
  gpu.alternative = gpu::SharesOfMemory(int64_t{model.memory_gib()} * 1024, kMaxShares);
  gpu.reported = true;
  return gpu;
}

bool IsNosAnnotation(const std::string& key) { return key.starts_with("nos.nebuly.com/"); }

// The node as it would be with nos and without pods on its GPUs. Null: its GPU model is not known,
// and it stays as it is.
SharedNode WithNos(const cluster::Node& node, int64_t gpus, const gpu::Catalogue& catalogue) {
  const gpu::Model* model = ModelOf(node, catalogue);
  if (model == nullptr) return nullptr;
  auto as_if = std::make_shared<cluster::Node>(node);
  std::erase_if(as_if->meta.annotations,
                [](const auto& note) { return IsNosAnnotation(note.first); });
  const auto is_gpu = [](const auto& entry) { return entry.first.starts_with(kVendor); };
  std::erase_if(as_if->capacity, is_gpu);
  std::erase_if(as_if->allocatable, is_gpu);
  as_if->meta.labels[std::string(cluster::kPartitioningLabel)] = "hybrid";
  as_if->meta.labels[std::string(cluster::kCountLabel)] = std::to_string(gpus);
  std::vector<cluster::Gpu> fresh;
  for (int i = 0; i < gpus; ++i) {
    fresh.push_back(Shareable(*model, i, catalogue));
    if (fresh.back().model == nullptr) return nullptr;
  }
  cluster::Apply(cluster::StatusPatch(*as_if, fresh, "0", /*hybrid=*/true),
                 as_if->meta.annotations);
  return as_if;
}

// The pod as if it had never been placed.
SharedPod Unplaced(const cluster::Pod& pod) {
  auto fresh = std::make_shared<cluster::Pod>(pod);
  fresh->node_name.clear();
  fresh->nominated_node.clear();
  fresh->phase = "Pending";
  fresh->conditions.clear();
  fresh->started.reset();
  return fresh;
}

class Auditor {
 public:
  Auditor(const ClusterObjects& objects, const gpu::Catalogue& catalogue,
          const scheduling::FrameworkChoice& frameworks, const std::function<bool()>& out_of_time)
      : catalogue_(catalogue), frameworks_(frameworks), out_of_time_(out_of_time) {
    if (objects.context) context_ = *objects.context;
    for (const SharedNode& node : objects.nodes) AddNode(*node);
    for (const SharedPod& pod : objects.pods) AddPod(pod);
  }

  Audit Run() && {
    std::set<std::string> all;
    for (const auto& [name, node] : nodes_) all.insert(name);
    Placed placed = Place(all, running_);
    audit_.misfits = running_.size() - placed.pods.size();
    std::erase_if(running_,
                  [&](const SharedPod& pod) { return !placed.pods.contains(pod->Key()); });
    const std::set<std::string> kept = FewestNodes(all, placed);
    Describe(placed, kept);
    CountStarting(all);
    Assume();
    return std::move(audit_);
  }

 private:
  struct Placed {
    std::map<std::string, planning::PodOutcome> pods;  // by key
  };

  void AddNode(const cluster::Node& node) {
    const int64_t gpus = GpuCount(node);
    SharedNode as_if = gpus > 0 ? WithNos(node, gpus, catalogue_) : nullptr;
    const bool known = as_if != nullptr;
    if (!known) as_if = std::make_shared<const cluster::Node>(node);
    nodes_[node.meta.name] = std::move(as_if);
    if (gpus == 0) return;
    audit_.gpus += static_cast<size_t>(gpus);
    if (!known) unknown_gpus_ += static_cast<size_t>(gpus);
    AuditedNode audited;
    audited.name = node.meta.name;
    audited.labelled = node.meta.labels.contains(cluster::kPartitioningLabel);
    audited.known = known;
    audit_.nodes.push_back(std::move(audited));
  }

  void AddPod(const SharedPod& pod) {
    if (pod->Finished()) return;
    if (!RequestsGpus(*pod) || scheduling::IsTiedToNode(*pod)) {
      if (!pod->node_name.empty()) others_.push_back(pod);
      return;
    }
    if (pod->HasClaims()) ++with_claims_;
    if (!pod->node_name.empty()) {
      running_.push_back(Unplaced(*pod));
      ++pods_now_[pod->node_name];
      ++audit_.running;
    } else if (scheduling::IsPending(*pod)) {
      ++audit_.pending;
      if (!scheduling::IsGated(*pod)) pending_.push_back(Unplaced(*pod));
    }
  }

  cluster::ClusterSnapshot SnapshotOf(const std::set<std::string>& names) const {
    std::vector<SharedNode> nodes;
    for (const std::string& name : names) nodes.push_back(nodes_.at(name));
    auto snapshot = cluster::ClusterSnapshot::Build(nodes, others_, catalogue_);
    snapshot.ChangeContext() = context_;
    return snapshot;
  }

  planning::Plan PlanFor(const cluster::ClusterSnapshot& snapshot,
                         const std::vector<SharedPod>& pods) const {
    planning::PlanOptions options;
    options.hold_after = Duration::zero();
    options.out_of_time = out_of_time_;
    return planning::MakePlan(snapshot, pods, frameworks_, options);
  }

  Placed Place(const std::set<std::string>& nodes, const std::vector<SharedPod>& pods) const {
    Placed placed;
    for (planning::PodOutcome& outcome : PlanFor(SnapshotOf(nodes), pods).pods) {
      if (outcome.placed) placed.pods[outcome.pod->Key()] = std::move(outcome);
    }
    return placed;
  }

  // Tries to do without nodes, those with fewest pods today first: half of the candidates at once,
  // then parts of those that are needed. `placed` becomes the plan on the nodes that are left.
  std::set<std::string> FewestNodes(std::set<std::string> kept, Placed& placed) {
    std::vector<std::string> candidates;
    for (const AuditedNode& node : audit_.nodes) candidates.push_back(node.name);
    std::ranges::stable_sort(candidates, {},
                             [&](const std::string& name) { return pods_now_[name]; });
    std::vector<std::pair<size_t, size_t>> ranges = {{0, candidates.size()}};
    while (!ranges.empty()) {
      const auto [begin, end] = ranges.back();
      ranges.pop_back();
      if (begin == end) continue;
      if (out_of_time_()) {
        audit_.complete = false;
        break;
      }
      std::set<std::string> fewer = kept;
      for (size_t i = begin; i < end; ++i) fewer.erase(candidates[i]);
      Placed there = Place(fewer, running_);
      if (there.pods.size() == running_.size()) {
        kept = std::move(fewer);
        placed = std::move(there);
      } else if (end - begin > 1) {
        const size_t middle = begin + (end - begin) / 2;
        ranges.emplace_back(middle, end);
        ranges.emplace_back(begin, middle);  // next
      }
    }
    return kept;
  }

  void Describe(const Placed& placed, const std::set<std::string>& kept) {
    std::map<std::string, std::map<int, AuditedGpu>> gpus;  // by node and index
    std::map<std::string, int> uncounted;
    for (const auto& [key, outcome] : placed.pods) {
      for (const planning::AssignedDevice& device : outcome.devices) {
        AuditedGpu& gpu = gpus[outcome.node][device.gpu];
        const gpu::Model* model = device.model;
        if (model == nullptr) model = ModelAt(outcome.node, device.gpu);
        if (model == nullptr) continue;
        gpu.slots = model->slots();
        gpu.mode = gpu::SharingModeOfProfile(device.profile);
        gpu.slices.push_back({device.placement.start,
                              model->profile(device.placement.profile).slots, device.profile, key});
      }
      if (outcome.devices.empty()) {
        uncounted[outcome.node] +=
            static_cast<int>(AmountOf(cluster::PodRequests(*outcome.pod), gpu::kWholeGpu));
      }
    }
    for (AuditedNode& node : audit_.nodes) {
      node.pods_now = pods_now_[node.name];
      node.may_go = !kept.contains(node.name);
      const cluster::NodeGpus there = cluster::ReadNodeGpus(*nodes_.at(node.name), catalogue_);
      for (const cluster::Gpu& known : node.known ? there.gpus : std::vector<cluster::Gpu>()) {
        AuditedGpu gpu = gpus[node.name][known.index];
        gpu.index = known.index;
        gpu.model = gpu::ProductOf(*known.model, known.alternative);
        if (gpu.slots == 0) gpu.slots = known.model->slots();
        std::ranges::sort(gpu.slices, {}, &AuditedGpu::Slice::start);
        if (!gpu.slices.empty()) ++audit_.gpus_needed;
        node.gpus.push_back(std::move(gpu));
      }
      audit_.gpus_needed += static_cast<size_t>(uncounted[node.name]);
    }
  }

  const gpu::Model* ModelAt(const std::string& node, int index) const {
    for (const cluster::Gpu& gpu : cluster::ReadNodeGpus(*nodes_.at(node), catalogue_).gpus) {
      if (gpu.index == index) return gpu.model;
    }
    return nullptr;
  }

  // Pending pods beside the running ones, which come first.
  void CountStarting(const std::set<std::string>& all) {
    if (pending_.empty()) return;
    cluster::ClusterSnapshot snapshot = SnapshotOf(all);
    for (const planning::PodOutcome& outcome : PlanFor(snapshot, running_).pods) {
      if (!outcome.placed) continue;
      cluster::Pod pod = *outcome.pod;
      for (const planning::AssignedDevice& device : outcome.devices) {
        pod.promised.push_back({device.gpu, device.placement, device.model});
      }
      (void)snapshot.Bind(std::make_shared<const cluster::Pod>(std::move(pod)), outcome.node);
    }
    for (const planning::PodOutcome& outcome : PlanFor(snapshot, pending_).pods) {
      if (outcome.placed) audit_.starting_pods.push_back(outcome.pod->Key());
    }
    audit_.starting = audit_.starting_pods.size();
  }

  void Assume() {
    auto& list = audit_.assumptions;
    list.emplace_back("every GPU may be used whole, by MIG, by MPS shares or in 4 time slices");
    list.emplace_back("pods keep their requests, priorities, affinities and volumes");
    list.emplace_back("all pods are placed anew: to get there some would restart");
    if (unknown_gpus_ > 0) {
      list.push_back(fmt::format(
          "{} GPUs have no label nvidia.com/gpu.product with a known model: only used whole",
          unknown_gpus_));
    }
    if (with_claims_ > 0) {
      list.push_back(
          fmt::format("{} pods have ResourceClaims: their claims are not counted", with_claims_));
    }
    if (audit_.misfits > 0) {
      list.push_back(
          fmt::format("{} running pods found no place when all were placed anew, and are left out",
                      audit_.misfits));
    }
    if (!audit_.complete) {
      list.emplace_back("the time limit ended the search: --time-limit finds more nodes to save");
    }
  }

  const gpu::Catalogue& catalogue_;
  const scheduling::FrameworkChoice& frameworks_;
  const std::function<bool()>& out_of_time_;
  cluster::ClusterContext context_;
  std::map<std::string, SharedNode> nodes_;  // with nos, by name; those without GPUs, too
  std::vector<SharedPod> others_, running_, pending_;
  std::map<std::string, size_t> pods_now_;
  size_t unknown_gpus_ = 0, with_claims_ = 0;
  Audit audit_;
};

}  // namespace

size_t Audit::NodesThatMayGo() const {
  return static_cast<size_t>(std::ranges::count_if(nodes, &AuditedNode::may_go));
}

Audit MakeAudit(const ClusterObjects& objects, const gpu::Catalogue& catalogue,
                const scheduling::FrameworkChoice& frameworks,
                const std::function<bool()>& out_of_time) {
  return Auditor(objects, catalogue, frameworks, out_of_time).Run();
}

}  // namespace nos::cmd
