#include "planning/testing/problems.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "gpu/shares.h"
#include "planning/model/share_states.h"

namespace nos::planning::testing {

uint16_t ProblemBuilder::Model(std::string_view name) {
  const gpu::Model* model = gpu::Catalogue::Builtin().FindByName(name);
  if (model == nullptr) model = gpu::FindShares(name);
  if (model == nullptr) model = gpu::Catalogue::Builtin().FindSharingModes(name);
  if (model == nullptr) std::abort();
  const auto it = std::find(problem_.models.begin(), problem_.models.end(), model);
  if (it != problem_.models.end()) return static_cast<uint16_t>(it - problem_.models.begin());
  problem_.models.push_back(model);
  return static_cast<uint16_t>(problem_.models.size() - 1);
}

int ProblemBuilder::Node(int64_t cpu, const std::vector<std::string>& gpus) {
  const int index = static_cast<int>(problem_.nodes.size());
  problem_.nodes.push_back(
      {static_cast<int>(problem_.gpus.size()), static_cast<int>(gpus.size()), false});
  problem_.free.push_back(cpu);
  for (const std::string& text : gpus) {
    const std::vector<std::string_view> words = Split(text, ' ');
    const std::vector<std::string_view> models = Split(words[0], '|');
    ProblemGpu g{.node = index, .model = Model(models[0])};
    if (models.size() > 1) g.alternative = Model(models[1]);
    const gpu::Model& model = *problem_.models[g.model];
    for (size_t i = 1; i < words.size(); ++i) {
      const bool used = words[i].ends_with('*');
      const std::string_view word = words[i].substr(0, words[i].size() - used);
      if (model.counted()) {
        (used ? g.used_shares : g.free_shares).push_back(model.FindProfile(word).value());
        continue;
      }
      const auto placement = model.ParsePlacement(word);
      const gpu::PlacementId id = model.layouts().Find(placement.value()).value();
      if (used) g.used = model.layouts().Add(g.used, id);
      if (!used) g.free |= uint64_t{1} << id;
      if (g.used == gpu::LayoutTable::kIllegal) std::abort();
    }
    problem_.gpus.push_back(g);
  }
  return index;
}

uint16_t ProblemBuilder::SliceIndex(const std::string& profile) {
  const auto it = std::find(slice_names_.begin(), slice_names_.end(), profile);
  if (it == slice_names_.end()) slice_names_.push_back(profile);
  return static_cast<uint16_t>(std::find(slice_names_.begin(), slice_names_.end(), profile) -
                               slice_names_.begin());
}

int ProblemBuilder::Pods(int count, const std::vector<std::string>& slices, int level,
                         int64_t cpu) {
  PodClass cls;
  cls.requests = {cpu};
  cls.level = level;
  cls.count = count;
  std::map<uint16_t, uint16_t> counts;
  for (const std::string& s : slices) ++counts[SliceIndex(s)];
  for (const auto& [slice, n] : counts) cls.slices.push_back({slice, n});
  problem_.classes.push_back(cls);
  only_.emplace_back();
  return static_cast<int>(problem_.classes.size() - 1);
}

void ProblemBuilder::Only(int cls, const std::vector<int>& nodes) { only_[cls] = nodes; }

Problem ProblemBuilder::Build() {
  Problem problem = problem_;
  problem.dimensions = 1;
  for (const std::string& name : slice_names_) {
    Slice& slice = problem.slices.emplace_back();
    for (const gpu::Model* model : problem.models) {
      const auto profile = model->FindProfile(name);
      slice.profile.push_back(profile.value_or(kNoProfile));
      if (!profile) continue;
      slice.size = std::max(slice.size, 840 * model->profile(*profile).slots / model->slots());
      slice.compute = model->profile(*profile).compute;
    }
  }
  problem.allowed.emplace_back(problem.nodes.size(), true);
  for (size_t c = 0; c < problem.classes.size(); ++c) {
    std::vector<SliceCount>& slices = problem.classes[c].slices;
    std::stable_sort(slices.begin(), slices.end(), [&](const SliceCount& a, const SliceCount& b) {
      return problem.slices[a.slice].size > problem.slices[b.slice].size;
    });
    if (only_[c].empty()) continue;
    std::vector<bool> row(problem.nodes.size());
    for (const int n : only_[c]) row[n] = true;
    const auto it = std::find(problem.allowed.begin(), problem.allowed.end(), row);
    problem.classes[c].allowed = static_cast<int>(it - problem.allowed.begin());
    if (it == problem.allowed.end()) problem.allowed.push_back(row);
  }
  problem.IndexShapes();
  return problem;
}

namespace {

using Shares = std::vector<gpu::ProfileId>;

// True if the shares fit on a GPU. `kept`: slots reserved for others; `kept_shares`: number of
// shares reserved for others.
bool FitTogether(const gpu::Model& model, const std::vector<Shares>& all, int kept = 0,
                 int kept_shares = 0) {
  int slots = kept, number = kept_shares;
  for (const Shares& some : all) {
    for (const gpu::ProfileId profile : some) slots += model.profile(profile).slots;
    number += static_cast<int>(some.size());
  }
  return slots <= model.slots() && number <= model.max_instances();
}

bool MaySwitch(const ProblemGpu& gpu) {
  return gpu.alternative != kNoModel && gpu.may_repartition && !gpu.broken && !gpu.IsUsed() &&
         gpu.blocked == 0 && gpu.kept_slots == 0 && gpu.kept_shares == 0;
}

std::string SharedGpuFault(const Draft& draft, int gpu, const ProblemGpu& g,
                           const std::vector<Device>& devices) {
  const Problem& problem = draft.problem();
  const gpu::Model& model = *problem.models[g.model];
  Shares planned, left = g.free_shares;
  bool creates = false;
  for (const Device& d : devices) {
    if (problem.slices[d.slice].profile[g.model] != d.placement) return "wrong profile";
    planned.push_back(d.placement);
    creates = creates || d.created;
    if (d.created) continue;
    const auto there = std::ranges::find(left, d.placement);
    if (there == left.end()) return "no such free share";
    left.erase(there);
  }
  if (creates && !g.may_repartition) return "fixed GPU shared anew";
  if (!planned.empty() &&
      !FitTogether(model, {g.used_shares, planned}, g.kept_slots, g.kept_shares)) {
    return "more shares than fit";
  }
  const GpuState& state = draft.states().Get(draft.gpu(gpu));
  int slots = 0;
  for (const Shares& some : {g.used_shares, planned}) {
    for (const gpu::ProfileId profile : some) slots += model.profile(profile).slots;
  }
  const Taken taken = Taken::Of(state.occupied);
  if (taken.slots != slots) return "the GPU's state is not the sum of its pods";
  const Shares& kept = draft.states().table().FreeSharesOf(state);
  for (const gpu::ProfileId profile : kept) {
    const auto there = std::ranges::find(left, profile);
    if (there == left.end()) return "a free share is kept that is not there";
    left.erase(there);
  }
  if (!left.empty() && !creates) return "free share lost for no pod";
  return FitTogether(model, {g.used_shares, planned, kept}) ? "" : "a kept free share does not fit";
}

std::string GpuFault(const Draft& draft, int gpu, const std::vector<Device>& devices) {
  const Problem& problem = draft.problem();
  ProblemGpu g = problem.gpus[gpu];
  if (draft.states().Get(draft.gpu(gpu)).model != g.model) {
    if (!MaySwitch(g)) return "switched, which it may not be";
    if (devices.empty()) return "switched for nobody";
    g.Switch();
  }
  const gpu::Model& model = *problem.models[g.model];
  if (model.counted()) return SharedGpuFault(draft, gpu, g, devices);
  const gpu::LayoutTable& table = model.layouts();
  gpu::LayoutId layout = g.used;
  bool creates = false;
  for (const Device& d : devices) {
    const gpu::Placement placement = table.placements()[d.placement];
    if (problem.slices[d.slice].profile[g.model] != placement.profile) return "wrong profile";
    if (g.blocked >> d.placement & 1) return "blocked placement taken";
    const bool there = (g.free >> d.placement & 1) != 0;
    if (there == d.created) return "existing instance confused with a new one";
    if (!g.may_repartition && !there) return "fixed GPU repartitioned";
    creates = creates || d.created;
    layout = table.Add(layout, d.placement);
    if (layout == gpu::LayoutTable::kIllegal) return "instances overlap";
  }
  const GpuState& state = draft.states().Get(draft.gpu(gpu));
  if (state.occupied != layout) return "the GPU's state is not the sum of its pods";
  uint64_t reused = 0;
  for (const Device& d : devices) reused |= d.created ? 0 : uint64_t{1} << d.placement;
  if ((g.free & ~reused & ~state.free) != 0 && !creates) return "free instance lost for no pod";
  for (uint64_t rest = state.free; rest != 0; rest &= rest - 1) {
    layout = table.Add(layout, static_cast<gpu::PlacementId>(std::countr_zero(rest)));
    if (layout == gpu::LayoutTable::kIllegal) return "a kept free instance overlaps";
  }
  return "";
}

}  // namespace

std::string Fault(const Draft& draft) {
  const Problem& problem = draft.problem();
  std::vector<std::vector<Device>> on_gpu(problem.gpus.size());
  std::vector<int64_t> free = problem.free;
  std::vector<int> placed(problem.classes.size());
  for (const PlacedPod& pod : draft.pods()) {
    if (!pod.alive) continue;
    const PodClass& cls = problem.classes[pod.cls];
    if (!problem.allowed[cls.allowed][pod.node]) return "pod on a forbidden node";
    ++placed[pod.cls];
    for (size_t r = 0; r < problem.dimensions; ++r) {
      int64_t& left = free[pod.node * problem.dimensions + r];
      left -= cls.requests[r];
      if (left < 0 && cls.requests[r] > 0) return "resources exceeded";
    }
    std::map<uint16_t, int> got;
    for (const Device& d : draft.DevicesOf(pod)) {
      if (problem.gpus[d.gpu].node != pod.node) return "device of another node";
      on_gpu[d.gpu].push_back(d);
      ++got[d.slice];
    }
    for (const SliceCount& s : cls.slices) {
      if (got[s.slice] != s.count) return "pod without all its slices";
    }
  }
  for (size_t c = 0; c < placed.size(); ++c) {
    if (placed[c] > problem.classes[c].count) return "pod placed twice";
    if (placed[c] != draft.PlacedOf(static_cast<int>(c))) return "miscounted";
  }
  for (size_t g = 0; g < on_gpu.size(); ++g) {
    const std::string fault = GpuFault(draft, static_cast<int>(g), on_gpu[g]);
    if (!fault.empty()) return "GPU " + std::to_string(g) + ": " + fault;
  }
  return "";
}

namespace {

// Decides on the pods one by one: leaves the pod out, or assigns its slices to the GPUs of each
// node in every possible way. A set of slices fits on a GPU if some legal layout contains it beside
// the used instances, or if memory suffices. Visited states are skipped. Uses no code of the
// planner except the models' layout tables.
class ForceSolver {
 public:
  explicit ForceSolver(const Problem& problem)
      : problem_(problem),
        on_gpu_(problem.gpus.size(), Counts(problem.slices.size())),
        possible_(problem.gpus.size()),
        free_(problem.free),
        score_(problem.levels) {
    for (size_t c = 0; c < problem.classes.size(); ++c) {
      for (int n = 0; n < problem.classes[c].count; ++n) pods_.push_back(static_cast<int>(c));
    }
    best_.score = score_;
  }

  Reference Run() {
    Try(0);
    return best_;
  }

 private:
  using Situation =
      std::tuple<size_t, std::vector<Counts>, std::vector<int64_t>, std::vector<int64_t>, int>;

  void Try(size_t pod) {
    if (score_ >= best_.score) {
      const int changes = Changes();
      if (score_ > best_.score || changes < best_.changes) best_.changes = changes;
      best_.score = score_;
    }
    best_.most_pods = std::max(best_.most_pods, placed_);
    if (pod == pods_.size() || !met_.insert({pod, on_gpu_, free_, score_, placed_}).second) return;
    const PodClass& cls = problem_.classes[pods_[pod]];
    for (int node = 0; node < static_cast<int>(problem_.nodes.size()); ++node) {
      if (!problem_.allowed[cls.allowed][node] || !Covers(cls, node)) continue;
      Charge(cls, node, 1);
      std::vector<uint16_t> want;
      for (const SliceCount& s : cls.slices) want.insert(want.end(), s.count, s.slice);
      Deal(pod, node, want, 0);
      Charge(cls, node, -1);
    }
    Try(pod + 1);
  }

  void Deal(size_t pod, int node, const std::vector<uint16_t>& want, size_t at) {
    if (at == want.size()) return Try(pod + 1);
    const ProblemNode& where = problem_.nodes[node];
    for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
      ++on_gpu_[g][want[at]];
      if (IsPossible(g)) Deal(pod, node, want, at + 1);
      --on_gpu_[g][want[at]];
    }
  }

  bool IsPossible(int g) {
    const auto [it, fresh] = possible_[g].try_emplace(on_gpu_[g]);
    if (!fresh) return it->second;
    return it->second = std::ranges::any_of(
               SharingModesOf(g), [&](const ProblemGpu& way) { return IsPossible(g, way); });
  }

  bool IsPossible(int g, const ProblemGpu& way) const {
    if (ModelOf(way).counted()) return SharesFit(g, way);
    const gpu::LayoutTable& table = ModelOf(way).layouts();
    for (size_t l = 0; l < table.size(); ++l) {
      if (Serves(g, way, table, static_cast<gpu::LayoutId>(l))) return true;
    }
    return false;
  }

  // The GPU as each of its models.
  std::vector<ProblemGpu> SharingModesOf(int g) const {
    std::vector<ProblemGpu> ways = {problem_.gpus[g]};
    if (!MaySwitch(ways[0])) return ways;
    ways.push_back(ways[0]);
    ways[1].Switch();
    return ways;
  }

  const gpu::Model& ModelOf(const ProblemGpu& gpu) const { return *problem_.models[gpu.model]; }

  // The shares assigned to a GPU; nullopt if a slice is not a share of this model.
  std::optional<Shares> SharesOn(int g, const ProblemGpu& way) const {
    Shares shares;
    for (size_t s = 0; s < problem_.slices.size(); ++s) {
      const gpu::ProfileId profile = problem_.slices[s].profile[way.model];
      if (on_gpu_[g][s] > 0 && profile == kNoProfile) return std::nullopt;
      shares.insert(shares.end(), on_gpu_[g][s], profile);
    }
    return shares;
  }

  bool SharesFit(int g, const ProblemGpu& gpu) const {
    const auto shares = SharesOn(g, gpu);
    if (!shares || (!gpu.may_repartition && Missing(gpu.free_shares, *shares) > 0)) return false;
    return shares->empty() ||
           FitTogether(ModelOf(gpu), {gpu.used_shares, *shares}, gpu.kept_slots, gpu.kept_shares);
  }

  // Number of wanted shares that do not exist.
  static int Missing(Shares there, const Shares& wanted) {
    int missing = 0;
    for (const gpu::ProfileId profile : wanted) {
      const auto at = std::ranges::find(there, profile);
      if (at == there.end()) {
        ++missing;
      } else {
        there.erase(at);
      }
    }
    return missing;
  }

  // Tries every subset of free shares to destroy.
  int ShareChanges(int g, const ProblemGpu& gpu) const {
    const auto on_it = SharesOn(g, gpu);
    if (!on_it) return kNever;
    const Shares& wanted = *on_it;
    int least = kNever;
    for (uint64_t stay = 0; stay < uint64_t{1} << gpu.free_shares.size(); ++stay) {
      Shares there;
      for (size_t i = 0; i < gpu.free_shares.size(); ++i) {
        if ((stay >> i & 1) != 0) there.push_back(gpu.free_shares[i]);
      }
      const int created = Missing(there, wanted), gone = std::popcount(~stay & All(gpu));
      // Kept free shares without a pod use memory, too.
      Shares besides = there;
      for (const gpu::ProfileId profile : wanted) {
        const auto at = std::ranges::find(besides, profile);
        if (at != besides.end()) besides.erase(at);
      }
      const bool fits = FitTogether(ModelOf(gpu), {gpu.used_shares, wanted, besides});
      if (!fits || (gone > 0 && created == 0) || (created > 0 && !gpu.may_repartition)) continue;
      least = std::min(least, created + gone);
    }
    return least;
  }
  static uint64_t All(const ProblemGpu& gpu) { return (uint64_t{1} << gpu.free_shares.size()) - 1; }

  bool Serves(int g, const ProblemGpu& gpu, const gpu::LayoutTable& table,
              gpu::LayoutId layout) const {
    if (!table.Keeps(layout, gpu.used)) return false;
    const uint64_t added = table.Members(layout) & ~table.Members(gpu.used);
    if ((added & gpu.blocked) != 0 || (!gpu.may_repartition && (added & ~gpu.free) != 0))
      return false;
    for (size_t s = 0; s < problem_.slices.size(); ++s) {
      const gpu::ProfileId profile = problem_.slices[s].profile[gpu.model];
      if (on_gpu_[g][s] == 0) continue;
      if (profile == kNoProfile) return false;
      if (std::popcount(added & table.PlacementsOf(profile)) < on_gpu_[g][s]) return false;
    }
    return true;
  }

  int Changes() {
    int changes = 0;
    for (size_t g = 0; g < on_gpu_.size(); ++g) {
      const auto [it, fresh] = changes_.try_emplace({g, on_gpu_[g]}, kNever);
      if (fresh) it->second = ChangesOn(static_cast<int>(g));
      changes += it->second;
    }
    return changes;
  }

  int ChangesOn(int g) const {
    const ProblemGpu& gpu = problem_.gpus[g];
    const auto ways = SharingModesOf(g);
    const bool nothing = std::ranges::all_of(on_gpu_[g], [](uint8_t n) { return n == 0; });
    const int least = ChangesOn(g, gpu);
    if (ways.size() == 1 || nothing) return least;
    const int gone = std::popcount(gpu.free) + static_cast<int>(gpu.free_shares.size());
    return std::min(least, ChangesOn(g, ways[1]) + gone);
  }

  int ChangesOn(int g, const ProblemGpu& way) const {
    if (ModelOf(way).counted()) return ShareChanges(g, way);
    const gpu::LayoutTable& table = ModelOf(way).layouts();
    int least = kNever;
    for (size_t l = 0; l < table.size(); ++l) {
      least = std::min(least, ChangesTo(g, way, table, static_cast<gpu::LayoutId>(l)));
    }
    return least;
  }

  // Used instances are kept, each new instance serves a pod, and all others were free before.
  int ChangesTo(int g, const ProblemGpu& gpu, const gpu::LayoutTable& table,
                gpu::LayoutId layout) const {
    if (!table.Keeps(layout, gpu.used)) return kNever;
    const uint64_t added = table.Members(layout) & ~table.Members(gpu.used);
    const uint64_t created = added & ~gpu.free;
    if ((created & gpu.blocked) != 0 || (created != 0 && !gpu.may_repartition)) return kNever;
    uint64_t serving = 0;
    for (size_t s = 0; s < problem_.slices.size(); ++s) {
      const gpu::ProfileId profile = problem_.slices[s].profile[gpu.model];
      if (profile == kNoProfile && on_gpu_[g][s] > 0) return kNever;
      if (profile == kNoProfile) continue;
      const uint64_t here = added & table.PlacementsOf(profile);
      serving |= here & created;
      if (std::popcount(here & ~gpu.blocked) < on_gpu_[g][s]) return kNever;
      if (std::popcount(here & created) > on_gpu_[g][s]) return kNever;
    }
    if (serving != created) return kNever;
    return std::popcount(created) + std::popcount(gpu.free & ~added);
  }

  bool Covers(const PodClass& cls, int node) const {
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      const int64_t left = free_[node * problem_.dimensions + r];
      if (cls.requests[r] > 0 && cls.requests[r] > left) return false;
    }
    return true;
  }

  void Charge(const PodClass& cls, int node, int sign) {
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      free_[node * problem_.dimensions + r] -= sign * cls.requests[r];
    }
    score_[cls.level] += sign * (cls.value * kValueUnit + 1);
    placed_ += sign;
  }

  const Problem& problem_;
  std::vector<int> pods_;                         // their classes
  std::vector<Counts> on_gpu_;                    // slices assigned to each GPU
  std::vector<std::map<Counts, bool>> possible_;  // by GPU
  static constexpr int kNever = 1000;
  std::map<std::pair<size_t, Counts>, int> changes_;  // by GPU and assigned slices
  std::vector<int64_t> free_, score_;
  int placed_ = 0;
  Reference best_;
  std::set<Situation> met_;
};

}  // namespace

Reference SolveByForce(const Problem& problem) { return ForceSolver(problem).Run(); }

}  // namespace nos::planning::testing
