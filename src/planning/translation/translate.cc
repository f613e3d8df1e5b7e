#include "planning/translation/translate.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "planning/translation/live_filters.h"
#include "planning/translation/pod_classes.h"
#include "scheduling/framework.h"
#include "scheduling/packing/view.h"
#include "scheduling/plugins/inter_pod_affinity/terms.h"
#include "scheduling/pod_kind.h"
#include "scheduling/reasons.h"

namespace nos::planning {
namespace {

using cluster::ResourceId;
using scheduling::DependsOn;
using scheduling::FilterPlugin;

class Translator {
 public:
  Translator(const cluster::ClusterSnapshot& snapshot, Pods pending,
             const scheduling::FrameworkChoice& frameworks, const PlanOptions& options)
      : snapshot_(snapshot),
        frameworks_(frameworks),
        options_(options),
        live_(snapshot, pending, frameworks) {
    out_.pending = pending;
    out_.catalogue = &snapshot.catalogue();
  }

  Translation Run() {
    // 1. Pods: equal ones become a class.
    PodGroups grouped = GroupPods(out_.pending, frameworks_, live_, options_);
    groups_ = std::move(grouped.all);
    out_.class_of = std::move(grouped.group_of);
    out_.gang_of = std::move(grouped.gang_of);
    out_.gangs = std::move(grouped.gangs);
    for (const Gang* gang : out_.gangs) out_.problem.gangs.push_back({gang->Lacking()});
    // 2. Models before resources: a resource is a slice by the models that serve it. Resources
    //    before nodes and classes, which refer to them by index.
    for (size_t n = 0; n < snapshot_.size(); ++n) out_.nodes.push_back(&snapshot_.node(n));
    FindModels();
    FindResources();
    for (const cluster::NodeInfo* node : out_.nodes) AddNode(*node);
    for (PodGroup& group : groups_) AddClass(group);
    if (std::ranges::any_of(out_.problem.classes, [](auto& cls) { return cls.slices.empty(); })) {
      AddPacking();
    }
    out_.problem.IndexShapes();
    return std::move(out_);
  }

 private:
  void FindModels() {
    Problem& problem = out_.problem;
    const auto add = [&](const gpu::Model* model) {
      if (model == nullptr || model_index_.contains(model)) return;
      model_index_[model] = static_cast<uint16_t>(problem.models.size());
      problem.models.push_back(model);
    };
    for (const cluster::NodeInfo* node : out_.nodes) {
      whole_are_slices_ = whole_are_slices_ || node->gpus.whole;
      for (const cluster::Gpu& gpu : node->gpus.gpus) {
        add(gpu.model);
        add(gpu.alternative);
      }
    }
  }

  // If hybrid nodes exist, whole GPUs are slices, too. Then no plan uses whole GPUs of other
  // partitioned nodes, where they need no planning.
  bool IsSlice(ResourceId id) const {
    static const ResourceId whole = cluster::InternResource(cluster::kWholeGpuResource);
    return cluster::IsSliceResource(id) || (whole_are_slices_ && id == whole);
  }

  // Nodes whose GPUs nos does not partition, or cannot read any of: schedulers place pods there by
  // what the node advertises.
  static bool CountsSlices(const cluster::NodeInfo& node) {
    return !node.gpus.managed || node.gpus.gpus.empty();
  }

  // MIG instances that pods request become slices, all other resources become dimensions. On nodes
  // that nos does not partition, MIG instances are plain resources, so they get a dimension, too,
  // if such a node offers them.
  void FindResources() {
    std::set<ResourceId> plain = {cluster::kPods}, mig;  // every pod requests one unit of kPods
    for (const PodGroup& group : groups_) {
      for (const auto& [id, amount] : group.requests.entries()) {
        if (amount > 0) (IsSlice(id) ? mig : plain).insert(id);
      }
    }
    // Ids depend on the order of interning, names do not.
    std::map<std::string, ResourceId> by_name;
    for (const ResourceId id : mig) by_name[cluster::ResourceName(id)] = id;
    for (const auto& [name, id] : by_name) {
      AddSlice(name, id);
      const bool unmanaged = std::any_of(
          out_.nodes.begin(), out_.nodes.end(), [mig_id = id](const cluster::NodeInfo* n) {
            return CountsSlices(*n) && n->allocatable.Get(mig_id) > 0;
          });
      mig_as_resource_ = mig_as_resource_ || unmanaged;
    }
    if (mig_as_resource_) plain.insert(mig.begin(), mig.end());
    std::map<std::string, ResourceId> names;
    for (const ResourceId id : plain) names[cluster::ResourceName(id)] = id;
    for (const auto& [name, id] : names) out_.dimensions.push_back(id);
    out_.problem.dimensions = out_.dimensions.size();
  }

  // Names that denote the same profile on every model of the cluster become one slice.
  void AddSlice(const std::string& name, ResourceId id) {
    Slice slice;
    for (const gpu::Model* model : out_.problem.models) {
      const auto profile = model->FindProfile(name);
      const bool offered = profile && model->Allows(*profile);
      slice.profile.push_back(offered ? *profile : kNoProfile);
      if (!offered) continue;
      const gpu::Profile& facts = model->profile(*profile);
      slice.size = std::max(slice.size, 840 * facts.slots / model->slots());
      slice.compute = std::max(slice.compute, facts.compute);
    }
    Problem& problem = out_.problem;
    const bool known = slice.size > 0;
    for (size_t s = 0; known && s < problem.slices.size(); ++s) {
      if (problem.slices[s].profile != slice.profile) continue;
      slice_of_[id] = static_cast<uint16_t>(s);
      return;
    }
    for (const Slice& other : problem.slices) GiveWay(other, slice);
    slice_of_[id] = static_cast<uint16_t>(problem.slices.size());
    problem.slices.push_back(std::move(slice));
    out_.slice_names.push_back(name);
  }

  // A profile of a model may serve one slice only: its instances would be counted twice otherwise.
  static void GiveWay(const Slice& other, Slice& slice) {
    for (size_t m = 0; m < slice.profile.size(); ++m) {
      if (slice.profile[m] == other.profile[m]) slice.profile[m] = kNoProfile;
    }
  }

  void AddNode(const cluster::NodeInfo& node) {
    Problem& problem = out_.problem;
    const int index = static_cast<int>(problem.nodes.size());
    problem.nodes.push_back(
        {static_cast<int>(problem.gpus.size()), 0, CountsSlices(node) && mig_as_resource_});
    for (const cluster::Gpu& gpu : node.gpus.gpus) AddGpu(gpu, index);
    problem.nodes.back().gpu_count =
        static_cast<int>(problem.gpus.size()) - problem.nodes.back().first_gpu;
    for (const ResourceId id : out_.dimensions) {
      const bool sliced_here = !CountsSlices(node) && IsSlice(id);
      const int64_t capacity = sliced_here ? kPlenty : std::min(node.allocatable.Get(id), kPlenty);
      problem.capacity.push_back(capacity);
      problem.free.push_back(
          sliced_here ? kPlenty
                      : std::max(capacity - std::min(node.requested.Get(id), kPlenty), -kPlenty));
    }
  }

  // A GPU with contradictory used instances serves no pod.
  void AddGpu(const cluster::Gpu& gpu, int node) {
    ProblemGpu g{.node = node, .model = model_index_.at(gpu.model), .may_repartition = !gpu.fixed};
    const auto used = gpu.Used();
    if (gpu.alternative != nullptr) g.alternative = model_index_.at(gpu.alternative);
    g.broken = !used;
    if (g.broken) g.may_repartition = false;
    if (gpu.model->counted()) {
      AddShares(gpu, g);
    } else if (used) {
      g.used = used->layout();
      for (const cluster::Instance& instance : gpu.instances) {
        const auto id = gpu.model->layouts().Find(instance.placement);
        if (!instance.used && id) g.free |= uint64_t{1} << *id;
      }
    }
    out_.problem.gpus.push_back(std::move(g));
  }

  static void AddShares(const cluster::Gpu& gpu, ProblemGpu& g) {
    if (g.broken) return;
    for (const cluster::Instance& instance : gpu.instances) {
      (instance.used ? g.used_shares : g.free_shares).push_back(instance.placement.profile);
    }
  }

  void AddClass(PodGroup& group) {
    PodClass cls;
    std::map<uint16_t, int64_t> counts;
    for (const auto& [id, amount] : group.requests.entries()) {
      if (IsSlice(id) && amount > 0) {
        int64_t& count = counts[slice_of_.at(id)];
        count = std::min(count + std::min(amount, kPlenty), kPlenty);
      }
    }
    for (const auto& [slice, count] : counts) {
      // More than any node has GPUs for; larger counts are equally impossible.
      const int64_t most = std::min<int64_t>(count, 0xffff);
      cls.slices.push_back({slice, static_cast<uint16_t>(most), count - most});
    }
    const std::vector<Slice>& slices = out_.problem.slices;
    std::stable_sort(cls.slices.begin(), cls.slices.end(), [&](SliceCount a, SliceCount b) {
      return slices[a.slice].size > slices[b.slice].size;
    });
    for (const ResourceId id : out_.dimensions) {
      cls.requests.push_back(std::min(group.requests.Get(id), kPlenty));
    }
    cls.allowed = RowOf(group);
    cls.level = group.level;
    cls.gang = group.gang;
    cls.extra = group.extra;
    cls.aged = group.wait_rank > 0 && (group.gang < 0 || group.extra);
    cls.count = static_cast<int>(group.members.size());
    cls.value = ValueOf(cls);
    out_.problem.classes.push_back(std::move(cls));
    out_.members.push_back(std::move(group.members));
  }

  int64_t ValueOf(const PodClass& cls) const {
    if (options_.objective == Objective::kPods) return 1;
    int64_t value = 0;
    for (const SliceCount& s : cls.slices) {
      const Slice& slice = out_.problem.slices[s.slice];
      const bool compute = options_.objective == Objective::kCompute;
      value += s.count * (compute ? int64_t{slice.compute} : MemoryOf(slice));
    }
    return value;
  }
  int64_t MemoryOf(const Slice& slice) const {
    int most = 0;
    for (size_t m = 0; m < slice.profile.size(); ++m) {
      if (slice.profile[m] == kNoProfile) continue;
      most = std::max(most, out_.problem.models[m]->profile(slice.profile[m]).memory_mib);
    }
    return most;
  }

  void AddPacking() {
    const scheduling::packing::View view(snapshot_);
    Packing& packing = out_.problem.packing;
    packing.demand = view.DemandOf(snapshot_, out_.pending);
    for (const cluster::NodeInfo* node : out_.nodes) {
      packing.nodes.push_back(view.NodeOf(*node));
      packing.tie_order.push_back(scheduling::packing::TieOrder(node->node->meta.name));
    }
    packing.cpu = DimensionOf(cluster::kCpu);
    packing.memory = DimensionOf(cluster::kMemory);
    packing.gpu = DimensionOf(scheduling::packing::WholeGpuResource());
  }
  int DimensionOf(ResourceId resource) const {
    const auto found = std::ranges::find(out_.dimensions, resource);
    return found == out_.dimensions.end() ? -1 : static_cast<int>(found - out_.dimensions.begin());
  }

  int RowOf(const PodGroup& group) {
    const auto [it, fresh] =
        row_of_.try_emplace(group.constraints, static_cast<int>(row_of_.size()));
    if (!fresh) return it->second;
    out_.row_pod.push_back(group.members[0]);
    const cluster::Pod& pod = *out_.pending[group.members[0]];
    if (!group.live) {
      AddRow(pod);
      return it->second;
    }
    out_.live_rows.insert(it->second);
    // Pods of one kind have separate rows with equal content.
    const Follows follows = FollowsOf(group);
    const auto [alike, first] = live_kinds_.try_emplace(
        std::tuple(frameworks_.IndexFor(pod), follows, scheduling::KindOf(pod)), it->second);
    if (first) {
      AddRow(pod);
      if (follows != Follows::kNobody) LetFollow(pod, follows);
    } else {
      out_.row_cycle.push_back(scheduling::Cycle(out_.row_cycle[alike->second]));
      out_.problem.allowed.push_back(std::vector<bool>(out_.problem.allowed[alike->second]));
    }
    return it->second;
  }

  void AddRow(const cluster::Pod& pod) {
    out_.row_cycle.push_back(frameworks_.For(pod).PreFilter(pod, snapshot_));
    std::vector<bool>& row = out_.problem.allowed.emplace_back(out_.nodes.size());
    for (size_t n = 0; n < row.size(); ++n) {
      row[n] = VerdictNow(out_.row_cycle.back(), pod, *out_.nodes[n]).fits();
    }
  }

  // Says whether the pod must be near other gang members, and whether some of these may run
  // anywhere.
  enum class Follows { kNobody, kMates, kFreeMates };
  Follows FollowsOf(const PodGroup& group) const {
    if (group.gang < 0) return Follows::kNobody;
    const cluster::Pod& pod = *out_.pending[group.members[0]];
    Follows follows = Follows::kNobody;
    for (const cluster::PodAffinityTerm& term : pod.pod_affinity.required) {
      for (const int index : out_.gangs[group.gang]->members) {
        const cluster::Pod& mate = *out_.pending[index];
        if (index == group.members[0] || !scheduling::MaySelect(term, pod, mate)) continue;
        if (mate.pod_affinity.required.empty()) return Follows::kFreeMates;
        follows = Follows::kMates;
      }
    }
    return follows;
  }

  // Pods that this pod must be near may not have a node yet. Its row (the last one) treats them as
  // if they were on every node; the replay of the plan checks the real nodes. The exception: if all
  // pods that it must be near have such constraints themselves and already have nodes, no other
  // node is possible.
  void LetFollow(const cluster::Pod& pod, Follows follows) {
    std::vector<bool>& row = out_.problem.allowed.back();
    if (follows == Follows::kMates && std::ranges::find(row, true) != row.end()) return;
    for (size_t n = 0; n < row.size(); ++n) {
      if (row[n]) continue;
      const auto obstacles =
          ObstaclesNow(frameworks_.For(pod), out_.row_cycle.back(), pod, *out_.nodes[n]);
      row[n] = std::ranges::all_of(obstacles, [](const auto& verdict) {
        return verdict.code == scheduling::codes::kPodAffinityMismatch;
      });
    }
  }

  const cluster::ClusterSnapshot& snapshot_;
  const scheduling::FrameworkChoice& frameworks_;
  const PlanOptions& options_;
  const LivePods live_;
  Translation out_;
  std::vector<PodGroup> groups_;
  std::map<const gpu::Model*, uint16_t> model_index_;
  std::map<ResourceId, uint16_t> slice_of_;
  bool mig_as_resource_ = false;
  bool whole_are_slices_ = false;
  std::unordered_map<std::string, int> row_of_;  // by constraint key
  // The first row by framework, kind of Follows and kind of pod.
  std::map<std::tuple<size_t, Follows, std::string>, int> live_kinds_;
};

}  // namespace

std::vector<scheduling::Verdict> ObstaclesNow(const scheduling::Framework& framework,
                                              const scheduling::Cycle& cycle,
                                              const cluster::Pod& pod,
                                              const cluster::NodeInfo& node) {
  std::vector<scheduling::Verdict> obstacles;
  if (!cycle.verdict.fits()) obstacles.push_back(cycle.verdict);
  if (cycle.nodes && !cycle.nodes->contains(node.node->meta.name)) {
    obstacles.push_back(cycle.elsewhere);
  }
  for (const FilterPlugin* filter : framework.filters()) {
    const bool counts = filter->Dependence() == DependsOn::kNodeObject || IsLive(*filter);
    if (!counts || !filter->Concerns(pod)) continue;
    scheduling::Verdict verdict = filter->Filter(cycle.state, pod, node);
    const bool known = std::ranges::any_of(
        obstacles, [&](const scheduling::Verdict& o) { return o.code == verdict.code; });
    if (!verdict.fits() && !known) obstacles.push_back(std::move(verdict));
  }
  return obstacles;
}

scheduling::Verdict VerdictNow(const scheduling::Cycle& cycle, const cluster::Pod& pod,
                               const cluster::NodeInfo& node) {
  if (!cycle.verdict.fits()) return cycle.verdict;
  if (cycle.nodes && !cycle.nodes->contains(node.node->meta.name)) return cycle.elsewhere;
  for (const FilterPlugin* filter : cycle.filters) {
    if (filter->Dependence() != DependsOn::kNodeObject && !IsLive(*filter)) continue;
    scheduling::Verdict verdict = filter->Filter(cycle.state, pod, node);
    if (!verdict.fits()) return verdict;
  }
  return scheduling::Verdict::Fits();
}

Translation Translate(const cluster::ClusterSnapshot& snapshot, Pods pending,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options) {
  return Translator(snapshot, pending, frameworks, options).Run();
}

}  // namespace nos::planning
