#include "study/scaling/unschedulable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace nos::study {
namespace {

// Source: kubernetes/autoscaler, cluster-autoscaler/FAQ.md, "What are the parameters to CA?":
// --scan-interval 10 s; --scale-down-utilization-threshold and
// --scale-down-gpu-utilization-threshold 0.5 (only GPUs count on nodes with GPUs);
// --max-empty-bulk-delete 10; --max-drain-parallelism 1; --scale-down-unneeded-time and
// --scale-down-delay-after-add 10 min, which are both `window` here.
constexpr double kScanInterval = 10;
constexpr double kMaxUse = 0.5;
constexpr int kMaxEmptyAtOnce = 10;

struct Need {
  int kind = 0, count = 0;  // devices
  int64_t cpu = 0, memory = 0;
};

// The free resources of a node.
struct Room {
  int64_t cpu = 0, memory = 0;
  std::vector<int> free;  // by kind of device

  bool Has(const Need& need) const {
    return cpu >= need.cpu && memory >= need.memory && free[need.kind] >= need.count;
  }
  void Add(const Need& need, int sign) {
    cpu += sign * need.cpu;
    memory += sign * need.memory;
    free[need.kind] += sign * need.count;
  }
};

using Rooms = std::map<int, Room>;  // by node

// An option of the expander: nodes of a pool that would serve pods.
struct Option {
  int pool = -1, count = 0;
  double waste = 0;
};

class UnschedulableScaler : public Scaler {
 public:
  UnschedulableScaler(Stage& stage, const StaticLayout& layout, double window, bool packs)
      : stage_(stage), window_(window), packs_(packs), kinds_{""} {
    for (const ScalingDevice& device : layout.devices) {
      if (std::ranges::count(kinds_, device.profile) == 0) kinds_.push_back(device.profile);
    }
    const size_t pools = stage.options().pools.size();
    for (size_t p = 0; p < pools; ++p) {
      const bool partitioned = !layout.devices.empty() && p >= pools / 2;
      std::vector<ScalingDevice>& devices = devices_.emplace_back();
      for (int g = 0; g < stage.options().pools[p].gpus; ++g) {
        if (!partitioned) devices.push_back({g, "", 0});
        for (const ScalingDevice& device : layout.devices) {
          if (partitioned) devices.push_back({g, device.profile, device.start});
        }
      }
    }
  }

  Status Arrived(int job) override {
    dirty_ = true;
    Place(job);
    return Status::Ok();
  }
  Status Ended(int job, int node) override {
    Free(job, node);
    PlaceWaiting();
    return Status::Ok();
  }
  Status Ready(int node) override {
    const int pool = stage_.nodes()[node].pool;
    rooms_[node] = VictimsOf(pool);
    holders_[node].assign(devices_[pool].size(), -1);
    PlaceWaiting();
    return Status::Ok();
  }

  std::optional<double> NextLook() const override {
    std::optional<double> next;
    const auto at = [&](double when) {
      const double scan =
          std::max(std::ceil(when / kScanInterval) * kScanInterval, last_scan_ + kScanInterval);
      if (!next || scan < *next) next = scan;
    };
    if (dirty_) at(stage_.now());
    for (const auto& [node, since] : unneeded_) at(std::max(since, last_add_) + window_);
    return next;
  }

  Status Look() override {
    last_scan_ = stage_.now();
    const bool changed = std::exchange(dirty_, false);
    if (changed) {
      // Source: FAQ.md, "How does scale-down work?": scale-down is only considered if no scale-up
      // is needed.
      if (ScaleUp()) {
        last_add_ = stage_.now();
        dirty_ = true;
        return Status::Ok();
      }
      FindUnneeded();
    }
    RemoveDue();
    return Status::Ok();
  }

 private:
  Room VictimsOf(int pool) const {
    const ScalingPool& of = stage_.options().pools[pool];
    Room room{of.cpu_milli, of.memory_mib, std::vector<int>(kinds_.size())};
    for (const ScalingDevice& device : devices_[pool]) ++room.free[KindOf(device.profile)];
    return room;
  }
  int KindOf(const std::string& profile) const {
    return static_cast<int>(std::ranges::find(kinds_, profile) - kinds_.begin());
  }

  // The job requests the smallest sufficient device: a whole GPU if no slice is large enough.
  Need NeedOf(int index) const {
    const ScalingJob& job = stage_.job(index);
    Need need{0, std::max(job.gpus, 1), job.cpu_milli, job.memory_mib};
    if (job.slice.empty()) return need;
    const gpu::Model& model = ScalingModel();
    const gpu::Profile& asked = ScalingProfile(job.slice);
    std::pair best{model.slots() + 1, 0};
    for (size_t k = 1; k < kinds_.size(); ++k) {
      const gpu::Profile& kind = ScalingProfile(kinds_[k]);
      if (kind.compute < asked.compute || kind.slots < asked.slots) continue;
      const std::pair size{kind.slots, kind.compute};
      if (size >= best) continue;
      best = size;
      need.kind = static_cast<int>(k);
    }
    return need;
  }

  // Like kube-scheduler: NodeResourcesFit scores by the remaining cpu and memory, most first
  // (LeastAllocated, the default) or least first.
  void Place(int job) {
    const Need need = NeedOf(job);
    int best = -1;
    int64_t best_score = 0;
    for (const auto& [node, room] : rooms_) {
      if (!room.Has(need)) continue;
      const ScalingPool& pool = stage_.options().pools[stage_.nodes()[node].pool];
      const int64_t score =
          (100 * (room.cpu - need.cpu) / std::max<int64_t>(pool.cpu_milli, 1) +
           100 * (room.memory - need.memory) / std::max<int64_t>(pool.memory_mib, 1)) /
          2;
      if (best >= 0 && (packs_ ? score >= best_score : score <= best_score)) continue;
      best_score = score;
      best = node;
    }
    if (best >= 0) stage_.Start(job, best, Take(job, best, need), 0);
  }
  void PlaceWaiting() {
    dirty_ = true;
    const std::set<int> waiting = stage_.waiting();
    for (const int job : waiting) Place(job);
  }

  std::vector<ScalingDevice> Take(int job, int node, const Need& need) {
    rooms_[node].Add(need, -1);
    const std::vector<ScalingDevice>& devices = devices_[stage_.nodes()[node].pool];
    std::vector<int>& holders = holders_[node];
    std::vector<ScalingDevice> taken;
    for (size_t d = 0; d < devices.size() && static_cast<int>(taken.size()) < need.count; ++d) {
      if (holders[d] >= 0 || KindOf(devices[d].profile) != need.kind) continue;
      holders[d] = job;
      taken.push_back(devices[d]);
    }
    return taken;
  }
  void Free(int job, int node) {
    rooms_[node].Add(NeedOf(job), 1);
    std::ranges::replace(holders_[node], job, -1);
  }

  // Pending jobs for which the requested nodes have no capacity.
  std::vector<int> Unserved() const {
    Rooms coming;
    for (const int node : stage_.live()) {
      if (!rooms_.contains(node)) coming[node] = VictimsOf(stage_.nodes()[node].pool);
    }
    std::vector<int> unserved;
    for (const int job : stage_.waiting()) {
      if (FirstFit(NeedOf(job), coming, {}) < 0) unserved.push_back(job);
    }
    return unserved;
  }

  // Takes the resources. -1 if no node has enough.
  static int FirstFit(const Need& need, Rooms& rooms, const std::set<int>& but) {
    for (auto& [node, room] : rooms) {
      if (but.contains(node) || !room.Has(need)) continue;
      room.Add(need, -1);
      return node;
    }
    return -1;
  }

  // Source: FAQ.md, "What are Expanders?": one node group at a time; least-waste selects the node
  // group with the least idle CPU after scale-up, then the least unused memory. The code
  // (expander/waste) adds both as shares of the total; so does this function.
  bool ScaleUp() {
    const std::vector<int> unserved = Unserved();
    if (unserved.empty()) return false;
    Option best;
    for (size_t p = 0; p < devices_.size(); ++p) {
      const Option option = Estimate(static_cast<int>(p), unserved);
      if (option.count > 0 && (best.count == 0 || option.waste < best.waste)) best = option;
    }
    for (int i = 0; i < best.count; ++i) stage_.Ask(best.pool);
    return best.count > 0;
  }

  // Source: cluster-autoscaler/estimator: first fit, largest pods first.
  Option Estimate(int pool, std::vector<int> jobs) const {
    const ScalingPool& of = stage_.options().pools[pool];
    const auto part = [](int64_t of_it, int64_t all) {
      return static_cast<double>(of_it) / static_cast<double>(std::max<int64_t>(all, 1));
    };
    const auto size = [&](int job) {
      return part(stage_.job(job).cpu_milli, of.cpu_milli) +
             part(stage_.job(job).memory_mib, of.memory_mib);
    };
    std::ranges::stable_sort(jobs, std::greater<>(), size);
    const Room empty = VictimsOf(pool);
    const int most = of.max - stage_.CountOf(pool);
    Rooms rooms;
    Option option{pool, 0, 0};
    double used = 0;
    for (const int job : jobs) {
      const Need need = NeedOf(job);
      if (!empty.Has(need)) continue;
      if (FirstFit(need, rooms, {}) < 0) {
        if (option.count == most) continue;
        rooms[option.count] = empty;
        rooms[option.count++].Add(need, -1);
      }
      used += size(job);
    }
    option.waste = option.count == 0 ? 0 : 2 - used / option.count;
    return option;
  }

  double UseOf(int node) const {
    const gpu::Model& model = ScalingModel();
    const std::vector<ScalingDevice>& devices = devices_[stage_.nodes()[node].pool];
    int used = 0, all = 0;
    for (size_t d = 0; d < devices.size(); ++d) {
      const int slots =
          devices[d].profile.empty() ? model.slots() : ScalingProfile(devices[d].profile).slots;
      all += slots;
      used += holders_.at(node)[d] >= 0 ? slots : 0;
    }
    return all == 0 ? 0 : static_cast<double>(used) / all;
  }

  // The target node of each of the node's jobs; nullopt if one has none.
  std::optional<std::map<int, int>> PlacesFor(int node, Rooms& rooms,
                                              const std::set<int>& but) const {
    Rooms tried = rooms;
    std::map<int, int> places;
    for (const int job : stage_.nodes()[node].jobs) {
      const int to = FirstFit(NeedOf(job), tried, but);
      if (to < 0) return std::nullopt;
      places[job] = to;
    }
    rooms = std::move(tried);
    return places;
  }

  // Checks nodes one after the other, empty ones first. A node that would receive pods is kept.
  void FindUnneeded() {
    std::vector<int> order;
    for (const auto& [node, room] : rooms_) order.push_back(node);
    std::ranges::stable_partition(order,
                                  [&](int node) { return stage_.nodes()[node].jobs.empty(); });
    Rooms rooms = rooms_;
    std::set<int> going, taking;
    std::map<int, double> unneeded;
    for (const int node : order) {
      if (taking.contains(node) || UseOf(node) > kMaxUse) continue;
      std::set<int> but = going;
      but.insert(node);
      const auto places = PlacesFor(node, rooms, but);
      if (!places) continue;
      for (const auto& [job, to] : *places) taking.insert(to);
      going.insert(node);
      const auto before = unneeded_.find(node);
      unneeded[node] = before == unneeded_.end() ? stage_.now() : before->second;
    }
    unneeded_ = std::move(unneeded);
  }

  // Removes empty nodes together, others one by one.
  void RemoveDue() {
    std::set<int> going;
    for (const auto& [node, since] : unneeded_) going.insert(node);
    int empty = 0;
    bool drained = false;
    for (const int node : going) {
      if (std::max(unneeded_[node], last_add_) + window_ > stage_.now()) continue;
      if (stage_.nodes()[node].jobs.empty()) {
        if (empty++ < kMaxEmptyAtOnce) Remove(node);
      } else if (!std::exchange(drained, true)) {
        Drain(node, going);
      }
    }
  }
  void Drain(int node, const std::set<int>& going) {
    Rooms rooms = rooms_;
    const auto places = PlacesFor(node, rooms, going);
    if (!places) {
      unneeded_.erase(node);
      dirty_ = true;
      return;
    }
    for (const auto& [job, to] : *places) {
      Free(job, node);
      stage_.Move(job, to, Take(job, to, NeedOf(job)));
    }
    Remove(node);
  }
  void Remove(int node) {
    rooms_.erase(node);
    holders_.erase(node);
    unneeded_.erase(node);
    stage_.Remove(node);
    dirty_ = true;
  }

  Stage& stage_;
  const double window_;
  const bool packs_;
  std::vector<std::string> kinds_;                   // kinds of devices; the first is the whole GPU
  std::vector<std::vector<ScalingDevice>> devices_;  // by pool
  Rooms rooms_;                                      // of ready nodes
  std::map<int, std::vector<int>> holders_;          // by node and device: the job; -1: free
  std::map<int, double> unneeded_;                   // by node: unneeded since
  double last_scan_ = -kScanInterval;
  double last_add_ = -1e18;
  bool dirty_ = false;  // set if something changed since the last scan
};

}  // namespace

const std::vector<StaticLayout>& StaticLayouts() {
  static const std::vector<StaticLayout> kLayouts = {
      {"whole", {}},
      {"7x1g",
       {{0, "1g.10gb", 0},
        {0, "1g.10gb", 1},
        {0, "1g.10gb", 2},
        {0, "1g.10gb", 3},
        {0, "1g.10gb", 4},
        {0, "1g.10gb", 5},
        {0, "1g.10gb", 6}}},
      {"3x2g+1g", {{0, "2g.20gb", 0}, {0, "2g.20gb", 2}, {0, "2g.20gb", 4}, {0, "1g.10gb", 6}}},
      {"2x3g", {{0, "3g.40gb", 0}, {0, "3g.40gb", 4}}},
      {"4g+3g", {{0, "4g.40gb", 0}, {0, "3g.40gb", 4}}},
      {"balanced", {{0, "1g.10gb", 0}, {0, "1g.10gb", 1}, {0, "2g.20gb", 2}, {0, "3g.40gb", 4}}},
  };
  return kLayouts;
}

Result<StaticLayout> FindStaticLayout(const std::string& name) {
  std::string names;
  for (const StaticLayout& layout : StaticLayouts()) {
    if (layout.name == name) return layout;
    names += (names.empty() ? "" : ", ") + layout.name;
  }
  return Invalid(fmt::format("unknown layout \"{}\"; there are {}", name, names));
}

std::vector<ScalingPool> StaticPools(std::span<const ScalingPool> pools,
                                     const StaticLayout& layout) {
  std::vector<ScalingPool> all(pools.begin(), pools.end());
  if (layout.devices.empty()) return all;
  for (const ScalingPool& pool : pools) {
    all.push_back(pool);
    all.back().name += "-partitioned";
  }
  return all;
}

std::unique_ptr<Scaler> MakeUnschedulableScaler(Stage& stage, const StaticLayout& layout,
                                                double window, bool packs) {
  return std::make_unique<UnschedulableScaler>(stage, layout, window, packs);
}

}  // namespace nos::study
