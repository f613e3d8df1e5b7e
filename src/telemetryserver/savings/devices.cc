#include "telemetryserver/savings/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kMibPerGib = 1024;
// Layouts are chosen for so many GPUs, and repeated for further ones.
constexpr size_t kMaxChosen = 200;
constexpr size_t kMaxTypes = 64, kMaxClasses = 1'000;
constexpr size_t kMaxOptions = 500'000;  // of all classes: 8 MB

int64_t GibOf(int64_t mib) { return (mib + kMibPerGib - 1) / kMibPerGib; }

// "1g.10gb+me" and "1g.10gb" are alike but for engines that few pods need.
bool IsPlainInstance(const gpu::Profile& profile) {
  return profile.name.find_first_of("+-") == std::string::npos;
}

int64_t TimeSlicesOf(const GpuType& type) {
  const int of_model = type.model == nullptr ? 0 : type.model->compute_slices();
  return of_model > 1 ? of_model : gpu::kMaxTimeSlices;
}

int64_t SharesIn(const GpuType& type, int64_t gib) {
  const int64_t usable = (type.gib * kMibPerGib - gpu::kShareOverheadMib) / kMibPerGib;
  return std::min<int64_t>(usable / std::max<int64_t>(1, gib), gpu::kMaxShares);
}

bool Covers(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::equal(a, b, std::greater_equal());
}

// Numbers of instances of each profile in the maximal layouts of a model, without those that
// another one covers.
std::set<std::vector<int>> MaximalCounts(const gpu::Model& model,
                                         const std::vector<gpu::ProfileId>& profiles) {
  const gpu::LayoutTable& table = model.layouts();
  std::set<std::vector<int>> found;
  for (size_t id = 0; id < table.size(); ++id) {
    const auto layout = static_cast<gpu::LayoutId>(id);
    if (!table.IsMaximal(layout)) continue;
    std::vector<int> counts;
    for (const gpu::ProfileId profile : profiles) {
      counts.push_back(std::popcount(table.Members(layout) & table.PlacementsOf(profile)));
    }
    if (std::ranges::any_of(counts, [](int count) { return count > 0; })) found.insert(counts);
  }
  std::set<std::vector<int>> best;
  for (const auto& counts : found) {
    const bool covered = std::ranges::any_of(
        found, [&](const auto& other) { return other != counts && Covers(other, counts); });
    if (!covered) best.insert(counts);
  }
  return best;
}

// The demand that no chosen layout serves yet.
class OpenDemand {
 public:
  struct Need {
    double wanted = 0, size = 0;  // number of devices at once, and GiB that each is worth
    const std::vector<DeviceOption>* options = nullptr;  // the smallest device first
  };
  // Needs that no layout has served before, and GiB of demand.
  struct Gain {
    int kinds = 0;
    double gib = 0;
    friend auto operator<=>(const Gain&, const Gain&) = default;
  };
  explicit OpenDemand(std::vector<Need> needs, size_t devices)
      : needs_(std::move(needs)), users_(devices) {
    has_some_.resize(needs_.size());
    for (const bool exactly : {true, false}) {  // first those that a device fits exactly
      for (size_t n = 0; n < needs_.size(); ++n) {
        const auto& options = *needs_[n].options;
        for (size_t i = 0; i < options.size(); ++i) {
          if ((i == 0) == exactly) users_[options[i].device].push_back({n, exactly});
        }
      }
    }
    Refill();
  }

  // Returns the gain of a layout. `take`: the layout is chosen, so its demand is served.
  Gain Serve(const StaticLayout& layout, bool take) {
    // A device that is larger than needed is worth a little less than one that fits.
    constexpr double kLarger = 0.99;
    std::vector<double> open = open_;
    Gain gain;
    for (const DeviceOption& device : layout.devices) {
      auto left = static_cast<double>(device.count);
      for (const User& user : users_[device.device]) {
        if (left <= 0) break;
        const double used = std::min(left, open[user.need]);
        open[user.need] -= used;
        left -= used;
        gain.gib += used * needs_[user.need].size * (user.exactly ? 1 : kLarger);
      }
    }
    for (size_t n = 0; n < needs_.size(); ++n) {
      const auto one = static_cast<double>(needs_[n].options->front().count);
      if (has_some_[n] || open_[n] - open[n] < one) continue;
      ++gain.kinds;
      has_some_[n] = take;
    }
    if (take) open_ = std::move(open);
    return gain;
  }
  void Refill() {
    open_.clear();
    for (const Need& need : needs_) open_.push_back(need.wanted);
  }

 private:
  struct User {
    size_t need = 0;
    bool exactly = false;
  };

  std::vector<Need> needs_;
  std::vector<std::vector<User>> users_;  // by device
  std::vector<double> open_;
  std::vector<bool> has_some_;  // a layout serves at least one pod with the need
};

// If nothing is open that a layout serves, all of the demand counts again.
size_t BestLayout(const std::vector<StaticLayout>& layouts, OpenDemand& open) {
  size_t best = 0;
  OpenDemand::Gain most;
  for (const bool refilled : {false, true}) {
    if (refilled) open.Refill();
    for (size_t i = 0; i < layouts.size(); ++i) {
      const OpenDemand::Gain gain = open.Serve(layouts[i], false);
      if (gain > most) std::tie(best, most) = std::pair(i, gain);
    }
    if (most.gib > 0) break;
  }
  return best;
}

}  // namespace

Result<Devices> Devices::Make(const Past& past, const gpu::Catalogue& catalogue) {
  Devices devices(past, catalogue);
  devices.AddTypes();
  std::set<Requests> classes;
  for (const PastPod& pod : past.pods) classes.insert(pod.requests);
  if (devices.types_.size() > kMaxTypes || classes.size() > kMaxClasses) {
    return Invalid(fmt::format(
        "that time has more than {} kinds of GPUs or {} kinds of requests: ask for a shorter time",
        kMaxTypes, kMaxClasses));
  }
  NOS_RETURN_IF_ERROR(devices.AddClasses());
  devices.AddLayouts();
  return devices;
}

void Devices::AddTypes() {
  std::map<GpuType, size_t> known;
  for (const PastGpu& gpu : past_.gpus) {
    const gpu::Model* model = catalogue_.FindByProduct(gpu.product);
    const GpuType type{model, model == nullptr ? GibOf(gpu.memory_mib) : model->memory_gib()};
    const auto [found, added] = known.try_emplace(type, types_.size());
    if (added) types_.push_back(type);
    type_of_.push_back(found->second);
  }
  // Steps of the golden ratio through the GPUs by type: any number of them has the types in nearly
  // the proportions of all.
  std::vector<size_t> by_type(type_of_.size());
  std::iota(by_type.begin(), by_type.end(), 0);
  std::ranges::stable_sort(by_type, {}, [&](size_t gpu) { return SortKeyOf(gpu); });
  const size_t count = by_type.size();
  size_t step = std::max<size_t>(1, static_cast<size_t>(static_cast<double>(count) * 0.6180339887));
  while (count > 0 && std::gcd(step, count) != 1) ++step;
  for (size_t i = 0; i < count; ++i) order_.push_back(by_type[i * step % count]);
}

// Independent of names of nodes.
std::tuple<std::string, int64_t, telemetry::Millis> Devices::SortKeyOf(size_t gpu) const {
  const GpuType& type = types_[type_of_[gpu]];
  return {type.model == nullptr ? std::string() : type.model->name(), type.gib, -PresenceOf(gpu)};
}

telemetry::Millis Devices::PresenceOf(size_t gpu) const {
  telemetry::Millis sum = 0;
  for (const PastGpu::Presence& time : past_.gpus[gpu].times) {
    sum += std::min(time.to, past_.to) - std::max(time.from, past_.from);
  }
  return sum;
}

double Devices::MeanOf(size_t gpus) const {
  telemetry::Millis sum = 0;
  for (size_t i = 0; i < gpus; ++i) sum += PresenceOf(PastOf(i));
  return static_cast<double>(sum) / static_cast<double>(past_.to - past_.from);
}

Status Devices::AddClasses() {
  std::map<Requests, size_t> classes;
  for (const PastPod& pod : past_.pods) {
    class_of_.push_back(classes.try_emplace(pod.requests, classes.size()).first->second);
  }
  AddDevices(classes);
  static_classes_.resize(classes.size());
  whole_classes_.resize(classes.size());
  size_t options = 0;
  for (const auto& [requests, id] : classes) {
    bool served = true;
    PodClass of;
    for (const DeviceRequest& request : requests) {
      of.needs.push_back(OptionsOf(request));
      served = served && !of.needs.back().empty();
      options += of.needs.back().size();
    }
    if (options > kMaxOptions) {
      return Invalid("that time has too many kinds of requests and GPUs: ask for a shorter time");
    }
    if (served) static_classes_[id] = std::move(of);
    if (auto whole = WholeOptionsOf(requests); !whole.empty()) {
      whole_classes_[id].needs.push_back(std::move(whole));
    }
  }
  return Status::Ok();
}

size_t Devices::DeviceOf(const Device& device) {
  const auto [found, added] = index_.try_emplace(device, all_.size());
  if (added) all_.push_back(device);
  return found->second;
}

void Devices::AddDevices(const std::map<Requests, size_t>& classes) {
  std::set<int64_t> shares;
  std::set<std::string> profiles;
  bool slices = false;
  for (const auto& [requests, id] : classes) {
    for (const DeviceRequest& request : requests) {
      if (request.kind == DeviceRequest::Kind::kMemory) shares.insert(request.gib);
      if (request.kind == DeviceRequest::Kind::kProfile) profiles.insert(request.profile);
      slices = slices || request.kind == DeviceRequest::Kind::kTimeSlice;
    }
  }
  for (size_t type = 0; type < types_.size(); ++type) {
    const auto& [model, gib] = types_[type];
    DeviceOf({Device::Kind::kWhole, type, 0, gib});
    if (slices) DeviceOf({Device::Kind::kTimeSlice, type, 0, gib});
    for (const int64_t share : shares) {
      if (SharesIn(types_[type], share) > 0) DeviceOf({Device::Kind::kShare, type, 0, share});
    }
    if (model == nullptr || model->counted()) continue;
    std::set<gpu::ProfileId> asked;
    for (const std::string& name : profiles) {
      if (const auto profile = model->FindProfile(name)) asked.insert(*profile);
    }
    for (size_t p = 0; p < model->profiles().size(); ++p) {
      const auto id = static_cast<gpu::ProfileId>(p);
      const gpu::Profile& profile = model->profile(id);
      if (!model->Allows(id) || (!IsPlainInstance(profile) && !asked.contains(id))) continue;
      DeviceOf({Device::Kind::kInstance, type, id, GibOf(profile.memory_mib)});
    }
  }
}

bool Devices::Serves(const Device& device, const DeviceRequest& request) const {
  using Kind = DeviceRequest::Kind;
  switch (request.kind) {
    case Kind::kGpu:
      return device.kind == Device::Kind::kWhole;
    case Kind::kTimeSlice:
      return device.kind == Device::Kind::kTimeSlice || device.kind == Device::Kind::kWhole;
    case Kind::kMemory:
      return device.kind != Device::Kind::kTimeSlice && device.gib >= request.gib;
    case Kind::kProfile:
      break;
  }
  const gpu::Model* model = types_[device.type].model;
  const auto asked = model == nullptr ? std::nullopt : model->FindProfile(request.profile);
  if (!asked) return false;
  if (device.kind == Device::Kind::kWhole) return true;
  if (device.kind != Device::Kind::kInstance) return false;
  const gpu::Profile &has = model->profile(device.profile), &wants = model->profile(*asked);
  if (device.profile == *asked) return true;
  return IsPlainInstance(wants) && IsPlainInstance(has) && has.slots >= wants.slots &&
         has.memory_mib >= wants.memory_mib && has.compute >= wants.compute;
}

std::vector<DeviceOption> Devices::OptionsOf(const DeviceRequest& request) const {
  std::vector<DeviceOption> options;
  for (size_t device = 0; device < all_.size(); ++device) {
    if (Serves(all_[device], request)) options.push_back({device, request.count});
  }
  const auto size = [&](const DeviceOption& option) {
    const Device& device = all_[option.device];
    // A whole GPU is the last choice, also beside an instance with all of its memory.
    return std::tuple(device.kind == Device::Kind::kWhole, device.gib, device.kind, device.profile);
  };
  std::ranges::stable_sort(options, {}, size);
  return options;
}

double Devices::PartOf(size_t type, const DeviceRequest& request) const {
  const auto& [model, gib] = types_[type];
  const auto count = static_cast<double>(request.count);
  switch (request.kind) {
    case DeviceRequest::Kind::kGpu:
      return count;
    case DeviceRequest::Kind::kTimeSlice:
      return count / static_cast<double>(TimeSlicesOf(types_[type]));
    case DeviceRequest::Kind::kMemory:
      if (request.gib > gib) return -1;
      return count * static_cast<double>(request.gib) / static_cast<double>(gib);
    case DeviceRequest::Kind::kProfile:
      break;
  }
  const auto profile = model == nullptr ? std::nullopt : model->FindProfile(request.profile);
  if (!profile) return -1;
  return count * model->profile(*profile).slots / model->slots();
}

std::vector<DeviceOption> Devices::WholeOptionsOf(const Requests& requests) const {
  constexpr double kRounding = 1e-9;
  std::vector<DeviceOption> options;
  for (size_t type = 0; type < types_.size(); ++type) {
    double parts = 0;
    bool serves = true;
    for (const DeviceRequest& request : requests) {
      const double part = PartOf(type, request);
      serves = serves && part >= 0;
      parts += part;
    }
    if (!serves) continue;
    const Device whole{Device::Kind::kWhole, type, 0, types_[type].gib};
    options.push_back({index_.at(whole), static_cast<int64_t>(std::ceil(parts - kRounding))});
  }
  std::ranges::stable_sort(options, {}, [&](const DeviceOption& option) {
    return all_[option.device].gib * option.count;
  });
  return options;
}

void Devices::AddLayouts() {
  layouts_.resize(types_.size());
  for (size_t type = 0; type < types_.size(); ++type) {
    layouts_[type].push_back(
        {"whole", {{index_.at({Device::Kind::kWhole, type, 0, types_[type].gib}), 1}}});
  }
  for (size_t id = 0; id < all_.size(); ++id) {
    const Device& device = all_[id];
    const GpuType& type = types_[device.type];
    if (device.kind == Device::Kind::kShare) {
      const int64_t count = SharesIn(type, device.gib);
      layouts_[device.type].push_back({fmt::format("{}x{}gb", count, device.gib), {{id, count}}});
    } else if (device.kind == Device::Kind::kTimeSlice) {
      const int64_t count = TimeSlicesOf(type);
      layouts_[device.type].push_back({fmt::format("{} time slices", count), {{id, count}}});
    }
  }
  for (size_t type = 0; type < types_.size(); ++type) {
    auto layouts = MigLayouts(type);
    std::ranges::move(layouts, std::back_inserter(layouts_[type]));
  }
}

std::vector<StaticLayout> Devices::MigLayouts(size_t type) const {
  std::vector<gpu::ProfileId> profiles;
  std::vector<size_t> ids;
  for (size_t id = 0; id < all_.size(); ++id) {
    if (all_[id].type != type || all_[id].kind != Device::Kind::kInstance) continue;
    profiles.push_back(all_[id].profile);
    ids.push_back(id);
  }
  std::vector<StaticLayout> layouts;
  if (profiles.empty()) return layouts;
  const gpu::Model& model = *types_[type].model;
  for (const auto& counts : MaximalCounts(model, profiles)) {
    StaticLayout layout;
    for (size_t p = counts.size(); p-- > 0;) {  // the largest first
      if (counts[p] == 0) continue;
      if (!layout.name.empty()) layout.name += " ";
      layout.name += fmt::format("{}x{}", counts[p], model.profile(profiles[p]).name);
      layout.devices.push_back({ids[p], counts[p]});
    }
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

// GPU by GPU, the layout that serves kinds of pods that no GPU serves yet, then most of what is
// open.
std::vector<size_t> Devices::ChooseLayouts(size_t gpus, const std::vector<double>& wanted) const {
  if (gpus == 0 || type_of_.empty()) return {};
  const size_t chosen = std::min(gpus, kMaxChosen);
  const auto gpu_of = [&](size_t i) { return PastOf(i * gpus / chosen); };
  double capacity = 0, demand = 0;
  for (size_t i = 0; i < chosen; ++i)
    capacity += static_cast<double>(types_[type_of_[gpu_of(i)]].gib);
  std::vector<OpenDemand::Need> needs;
  for (size_t c = 0; c < static_classes_.size(); ++c) {
    for (const auto& options : static_classes_[c].needs) {
      const DeviceOption& best = options.front();
      OpenDemand::Need need{wanted[c] * static_cast<double>(best.count),
                            static_cast<double>(all_[best.device].gib), &options};
      // The sample of GPUs stands for all of them.
      need.wanted *= static_cast<double>(chosen) / static_cast<double>(gpus);
      demand += need.wanted * need.size;
      needs.push_back(need);
    }
  }
  for (OpenDemand::Need& need : needs) {
    // The capacity is divided in proportion, because peaks are higher than the mean. Each kind is
    // served, if rarely wanted.
    need.wanted *= capacity / std::max(demand, 1e-9);
    need.wanted = std::max(need.wanted, static_cast<double>(need.options->front().count));
  }
  OpenDemand open(std::move(needs), all_.size());
  std::vector<std::vector<size_t>> sample(types_.size());  // layouts by type
  for (size_t i = 0; i < chosen; ++i) {
    const size_t type = type_of_[gpu_of(i)];
    const size_t best = BestLayout(layouts_[type], open);
    open.Serve(layouts_[type][best], true);
    sample[type].push_back(best);
  }
  std::vector<size_t> used(types_.size()), all;
  for (size_t i = 0; i < gpus; ++i) {
    const size_t type = type_of_[PastOf(i)];
    const auto& of_type = sample[type];
    all.push_back(of_type.empty() ? 0 : of_type[used[type]++ % of_type.size()]);
  }
  return all;
}

std::vector<CapacityChange> Devices::Changes(const std::vector<size_t>& layouts) const {
  std::map<std::pair<telemetry::Millis, size_t>, int64_t> changes;
  for (size_t i = 0; i < layouts.size(); ++i) {
    const size_t gpu = PastOf(i);
    for (const DeviceOption& device : layouts_[type_of_[gpu]][layouts[i]].devices) {
      for (const PastGpu::Presence& time : past_.gpus[gpu].times) {
        changes[{time.from, device.device}] += device.count;
        if (time.to != kEndless) changes[{time.to, device.device}] -= device.count;
      }
    }
  }
  std::vector<CapacityChange> sorted;
  for (const auto& [key, by] : changes) sorted.push_back({key.first, key.second, by});
  return sorted;
}

}  // namespace nos::telemetryserver
