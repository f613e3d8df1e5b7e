#include "telemetryserver/estimate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::telemetryserver {
namespace {

constexpr std::string_view kWholeGpu = "nvidia.com/gpu";
constexpr telemetry::Millis kNever = INT64_MAX;
constexpr size_t kMaxAsked = 16;  // slices per pod

// Begin the words of kube-scheduler and nos about nodes that no end of a pod and no repartitioning
// makes suitable.
constexpr std::array<std::string_view, 4> kRefusedForGood = {
    "node(s) didn't match Pod's node affinity/selector", "node(s) had untolerated taint",
    "node(s) had no GPU with profile", "node(s) were not opted in to partitioning"};

// True if each node is refused for good: "0/3 nodes are available: 2 node(s) had ..., 1 ...".
bool FitsNoNode(std::string_view message) {
  constexpr std::string_view kAvailable = " nodes are available: ";
  const size_t at = message.find(kAvailable);
  if (at == std::string_view::npos || !message.starts_with("0/")) return false;
  const auto nodes = ParseInt(message.substr(2, at - 2));
  int64_t refused = 0;
  for (std::string_view each : Split(message.substr(at + kAvailable.size()), ',')) {
    each = Trim(each);
    const size_t space = each.find(' ');
    const auto count = ParseInt(each.substr(0, space));
    if (!count || space == std::string_view::npos) continue;  // the rest of a sentence
    const std::string_view words = each.substr(space + 1);
    if (std::ranges::any_of(kRefusedForGood,
                            [&](auto known) { return words.starts_with(known); })) {
      refused += *count;
    }
  }
  return nodes && *nodes > 0 && refused >= *nodes;
}

// Why the pod cannot start whatever ends; "": it may.
std::string_view HeldBy(const Pod& pod) {
  if (pod.IsGated()) return kGated;
  return FitsNoNode(FindString(pod.body, "message")) ? kNoNode : std::string_view();
}

telemetry::Millis Median(std::vector<telemetry::Millis> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Time from which a resource is free, and the source of the estimate.
struct Ready {
  telemetry::Millis at = 0;
  std::string_view by;
};

// Slots of a GPU that are held until a time, or an MPS share by its index and GiB; with the CPU and
// memory of the pod.
struct Taken {
  int64_t start = 0, size = 0;
  Ready until;
  double cpu = 0, memory = 0;
};

struct HostGpu {
  const gpu::Model* model = nullptr;  // null: not partitioned
  bool whole = false;
  std::vector<Taken> taken;
};

// A node during the simulation, as pods end and others are placed.
struct Host {
  std::vector<HostGpu> gpus;
  double cpu = 0, memory = 0;  // free
};

// Free slots on a GPU of a host.
struct Place {
  size_t gpu = 0;
  int64_t start = 0, size = 0;
};

bool IsCounted(const HostGpu& host_gpu) {
  return host_gpu.model != nullptr && host_gpu.model->counted();
}

bool IsFree(const HostGpu& host_gpu, int64_t start, int64_t size) {
  if (IsCounted(host_gpu)) {
    for (const Taken& taken : host_gpu.taken) size += taken.size;
    return size <= host_gpu.model->slots() &&
           std::ssize(host_gpu.taken) < host_gpu.model->max_instances();
  }
  return std::ranges::none_of(host_gpu.taken, [&](const Taken& taken) {
    return taken.start < start + size && start < taken.start + taken.size;
  });
}

// An index that no share of the GPU uses.
int64_t FreeNumber(const HostGpu& host_gpu) {
  int64_t number = 0;
  while (std::ranges::count(host_gpu.taken, number, &Taken::start) > 0) ++number;
  return number;
}

// Position of one more slice of the resource, on the fullest GPU that has capacity.
std::optional<Place> PlaceFor(const Host& host, const std::string& resource) {
  std::optional<Place> best;
  size_t fullest = 0;
  const auto look = [&](size_t i, int64_t start, int64_t size) {
    const HostGpu& host_gpu = host.gpus[i];
    if (best && host_gpu.taken.size() <= fullest) return;
    if (!IsFree(host_gpu, start, size)) return;
    best = Place{i, start, size};
    fullest = host_gpu.taken.size();
  };
  for (size_t i = 0; i < host.gpus.size(); ++i) {
    const HostGpu& host_gpu = host.gpus[i];
    if (host_gpu.whole && resource == kWholeGpu) look(i, 0, 1);
    const auto id =
        host_gpu.model == nullptr ? std::nullopt : host_gpu.model->FindProfile(resource);
    if (!id || !host_gpu.model->Allows(*id)) continue;
    const gpu::Profile& profile = host_gpu.model->profile(*id);
    if (IsCounted(host_gpu)) {
      look(i, FreeNumber(host_gpu), profile.slots);
      continue;
    }
    for (const uint8_t start : profile.starts) look(i, start, profile.slots);
  }
  return best;
}

// Advances time from one release to the next and places pending pods in order after each.
class Simulation {
 public:
  Simulation(const State& state, const gpu::Catalogue& catalogue) : state_(state) {
    LookAtPlans();
    for (const auto& [name, node] : state.nodes()) {
      if (node.layout_at >= 0 && node.ready && node.schedulable) AddHost(node, catalogue);
    }
  }

  void Run(std::vector<const Pod*> waiting, std::map<std::string, Estimate>& estimates) {
    // 1. Place pods that fit now: they wait only for a plan.
    for (size_t i = 0; i < hosts_.size(); ++i) Fill(i, {state_.now(), kByPlan}, waiting, estimates);
    // 2. Advance to the next release, and place pods on its host only: no other host has changed.
    for (size_t events = 0; events < kMaxEvents && !ends_.empty() && !waiting.empty(); ++events) {
      const auto [at, host] = *ends_.begin();
      ends_.erase(ends_.begin());
      const Ready ended = EndUntil(hosts_[host], at);
      if (ended.at > 0) Fill(host, ended, waiting, estimates);
    }
  }

 private:
  static constexpr size_t kMaxEvents = 5000;

  void LookAtPlans() {
    std::vector<telemetry::Millis> took;
    for (const auto& [version, decision] : state_.decisions()) {
      const int64_t millis = telemetry::IntegerOr(decision, "took_ms", 0);
      const bool applied = FindString(decision, "state") == "applied";
      if (applied && millis > 0 && FindString(decision, "type") == "plan") took.push_back(millis);
    }
    if (!took.empty()) plan_time_ = Median(std::move(took));
  }

  void AddHost(const Node& node, const gpu::Catalogue& catalogue) {
    constexpr double kPlenty = 1e12;
    Host host;
    host.cpu = node.record_at < 0 ? kPlenty : node.free_cpu;
    host.memory = node.record_at < 0 ? kPlenty : node.free_memory;
    for (const telemetry::Gpu& gpu : node.layout.gpus) {
      if (!gpu.health.empty()) continue;
      HostGpu host_gpu{ModelOf(gpu, catalogue), gpu.slots == 0, {}};
      for (const telemetry::Holder& holder : gpu.holders) Hold(host_gpu, 0, 1, holder);
      for (const telemetry::Instance& instance : gpu.instances) {
        for (const telemetry::Holder& holder : instance.holders) {
          Hold(host_gpu, instance.start, instance.size, holder);
        }
      }
      for (const Taken& taken : host_gpu.taken) ends_.emplace(taken.until.at, hosts_.size());
      host.gpus.push_back(std::move(host_gpu));
    }
    hosts_.push_back(std::move(host));
  }

  // Model with the GPU's number of time slices; nothing else fits beside them. Null: unequal
  // slices.
  static const gpu::Model* TurnsOf(const telemetry::Gpu& gpu, const gpu::Catalogue& catalogue) {
    if (gpu.instances.empty() || gpu.instances.front().size < 1) return nullptr;
    const int64_t gib = std::clamp<int64_t>(gpu.memory / 1024, 1, gpu::kMaxModesGib);
    const int64_t slices = gpu.slots / gpu.instances.front().size;
    const gpu::Model* model =
        catalogue.FindSharingModes(gpu::NameOf({.mig = nullptr,
                                                .memory_gib = static_cast<int>(gib),
                                                .time_slices = static_cast<int>(slices)}));
    return model != nullptr && model->slots() == gpu.slots ? model : nullptr;
  }

  static const gpu::Model* ModelOf(const telemetry::Gpu& gpu, const gpu::Catalogue& catalogue) {
    if (gpu.SharedByMps()) return &gpu::SharesOf(static_cast<int>(gpu.slots));
    if (gpu.InTurns()) return TurnsOf(gpu, catalogue);
    return gpu.slots > 0 ? catalogue.FindByProduct(gpu.product) : nullptr;
  }

  void Hold(HostGpu& host_gpu, int64_t start, int64_t size, const telemetry::Holder& holder) const {
    const Pod* pod = state_.FindPod(holder.ns, holder.pod);
    if (pod != nullptr && pod->finished > 0) return;  // its end will be reported soon
    Taken taken{start, size, {kNever, kNoHistory}};
    if (pod != nullptr) {
      taken.until = EndOf(*pod);
      taken.cpu = pod->Request("cpu");
      taken.memory = pod->Request("memory");
    }
    host_gpu.taken.push_back(taken);
  }

  Ready EndOf(const Pod& pod) const {
    const telemetry::Millis now = state_.now();
    if (pod.ends > 0) return {std::max(pod.ends, now), kByReclaim};
    const telemetry::Millis age =
        pod.started > 0 ? std::max<telemetry::Millis>(0, now - pod.started) : 0;
    const telemetry::Millis run = RunOf(pod, age);
    return run > 0 ? Ready{now - age + run, kByHistory} : Ready{kNever, kNoHistory};
  }

  telemetry::Millis RunOf(const Pod& pod, telemetry::Millis age) const {
    for (const std::string& key : RunsKeys(pod)) {
      const auto* runs = state_.durations().RunsOf(key);
      if (runs != nullptr && runs->size() >= kMinRuns) return TypicalRun(*runs, age);
    }
    return 0;
  }

  // Removes holders that end by `at`; returns the last release, if any.
  static Ready EndUntil(Host& host, telemetry::Millis at) {
    Ready last;
    for (HostGpu& host_gpu : host.gpus) {
      std::erase_if(host_gpu.taken, [&](const Taken& taken) {
        if (taken.until.at > at || taken.until.at == kNever) return false;
        host.cpu += taken.cpu;
        host.memory += taken.memory;
        if (taken.until.at >= last.at) last = taken.until;
        return true;
      });
    }
    return last;
  }

  void Fill(size_t index, const Ready& ready, std::vector<const Pod*>& waiting,
            std::map<std::string, Estimate>& estimates) {
    std::vector<const Pod*> failed;  // one per kind: similar pods do not fit either
    std::erase_if(waiting, [&](const Pod* pod) {
      const auto alike = [&](const Pod* other) { return other->requests == pod->requests; };
      if (std::ranges::any_of(failed, alike)) return false;
      if (!TakePlaces(index, ready, *pod)) {
        failed.push_back(pod);
        return false;
      }
      const bool later = ready.at > state_.now();
      if (later) estimates[pod->uid] = {ready.at + plan_time_, ready.by};
      if (!later && plan_time_ > 0) estimates[pod->uid] = {ready.at + plan_time_, kByPlan};
      return true;
    });
  }

  // Takes slices for all requests of the pod on one host.
  bool TakePlaces(size_t index, const Ready& ready, const Pod& pod) {
    Host& host = hosts_[index];
    const double cpu = pod.Request("cpu"), memory = pod.Request("memory");
    if (host.cpu < cpu || host.memory < memory) return false;
    // 1. Reserve places one by one, so that a later slice does not take an earlier place.
    std::vector<Place> places;
    bool fits = true;
    for (const auto& [resource, amount] : pod.requests) {
      if (resource == "cpu" || resource == "memory" || amount <= 0) continue;
      fits = fits && amount + static_cast<double>(places.size()) <= kMaxAsked;
      for (double i = 0; fits && i < amount; ++i) {
        const auto place = PlaceFor(host, resource);
        fits = place.has_value();
        if (!fits) break;
        host.gpus[place->gpu].taken.push_back({place->start, place->size, {}});
        places.push_back(*place);
      }
    }
    // 2. All or nothing: undo the reservations if one slice does not fit.
    if (!fits || places.empty()) {
      for (const Place& place : places) host.gpus[place.gpu].taken.pop_back();
      return false;
    }
    // 3. Hold the places for the estimated run time. CPU and memory are counted at one place only.
    const telemetry::Millis run = RunOf(pod, 0);
    const Ready until =
        run > 0 ? Ready{ready.at + plan_time_ + run, kByHistory} : Ready{kNever, kNoHistory};
    for (const Place& place : places) {
      for (Taken& taken : host.gpus[place.gpu].taken) {
        if (taken.start == place.start && taken.size == place.size) taken.until = until;
      }
    }
    Taken& first = host.gpus[places.front().gpu].taken.back();
    first.cpu = cpu;
    first.memory = memory;
    host.cpu -= cpu;
    host.memory -= memory;
    ends_.emplace(until.at, index);
    return true;
  }

  const State& state_;
  std::vector<Host> hosts_;
  std::set<std::pair<telemetry::Millis, size_t>> ends_;  // releases by host
  telemetry::Millis plan_time_ = 0;                      // usual duration of a plan
};

}  // namespace

telemetry::Millis TypicalRun(const std::deque<telemetry::Millis>& runs, telemetry::Millis age) {
  std::vector<telemetry::Millis> longer;
  std::ranges::copy_if(runs, std::back_inserter(longer),
                       [&](telemetry::Millis run) { return run > age; });
  return longer.empty() ? 0 : Median(std::move(longer));
}

std::map<std::string, Estimate> EstimateStarts(const State& state,
                                               const gpu::Catalogue& catalogue) {
  std::vector<const Pod*> waiting;
  std::map<std::string, Estimate> estimates;
  for (const auto& [uid, pod] : state.pods()) {
    if (pod.state != "pending" || !pod.WantsGpu()) continue;
    const std::string_view held = HeldBy(pod);
    held.empty() ? waiting.push_back(&pod) : (void)(estimates[uid] = {0, held});
  }
  if (waiting.empty()) return estimates;
  std::ranges::sort(waiting, {}, [](const Pod* pod) {
    return std::tuple(-pod->priority, pod->created, std::string_view(pod->uid));
  });
  for (size_t i = 0; i < waiting.size(); ++i) {
    estimates[waiting[i]->uid] = {0, i < kMaxEstimated ? kNoHistory : kTooMany};
  }
  waiting.resize(std::min(waiting.size(), kMaxEstimated));
  Simulation(state, catalogue).Run(std::move(waiting), estimates);
  return estimates;
}

}  // namespace nos::telemetryserver
