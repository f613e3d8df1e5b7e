#include "dra/pools/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace nos::dra {
namespace {

// Selectors of claims are remembered too, and any user may write claims.
constexpr size_t kMaxMemos = 256;

struct ContentHash {
  size_t operator()(const std::tuple<const void*, const void*, bool>& content) const {
    const std::hash<const void*> hash;
    size_t seed = hash(std::get<0>(content));
    AddHash(seed, hash(std::get<1>(content)));
    return seed + (std::get<2>(content) ? 1 : 0);
  }
};

bool Prevents(const DeviceTaint& taint) {
  return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
}

// Kubernetes 1.34 has counters beside the devices of the same slice, which serve only that slice.
// Later versions have them in slices of their own, which serve the pool, and refuse the former.
Name ScopeOf(const ResourceSlice& slice) {
  const bool both = !slice.shared_counters.empty() && !slice.devices.empty();
  return both ? Name(slice.name) : Name();
}

}  // namespace

bool NamesGroups(const ResourceSlice& slice) {
  return std::any_of(slice.devices.begin(), slice.devices.end(), [](const Device& device) {
    return std::any_of(device.consumes->begin(), device.consumes->end(),
                       [](const Consumption& c) { return !c.groups.empty(); });
  });
}

Generation::Generation(std::vector<SlicePointer> slices, const Features& features,
                       const std::vector<DeviceTaintRule>& rules, PoolUse& use)
    : slices_(std::move(slices)) {
  if (features.partitionable_devices) AddCounters(features);
  AddDevices(features, rules);
  Attach(use);
}

void Generation::AddCounters(const Features& features) {
  for (const SlicePointer& slice : slices_) {
    for (const CounterSet& set : slice->shared_counters) {
      if (!counters_.Add(ScopeOf(*slice), set) && problem_.empty()) {
        problem_ = fmt::format("counter set {} occurs twice", set.name.str());
      }
    }
    has_groups_ = has_groups_ || (features.compatibility_groups && NamesGroups(*slice));
  }
}

void Generation::AddDevices(const Features& features, const std::vector<DeviceTaintRule>& rules) {
  size_t count = 0;
  for (const SlicePointer& slice : slices_) count += slice->devices.size();
  devices_.reserve(count);
  std::unordered_map<std::tuple<const void*, const void*, bool>, uint32_t, ContentHash> contents;
  for (const SlicePointer& slice : slices_) {
    first_device_.push_back(static_cast<uint32_t>(devices_.size()));
    for (const Device& device : slice->devices) {
      PoolDevice& added = devices_.emplace_back();
      added.slice = slice.get();
      added.device = &device;
      added.first_set = static_cast<uint32_t>(sets_.size());
      added.first_taint = static_cast<uint32_t>(taints_.size());
      const auto next = static_cast<uint32_t>(contents.size());
      added.content =
          contents
              .try_emplace({device.attributes.id(), device.capacity.id(), device.allow_multiple},
                           next)
              .first->second;
      if (features.device_taints) AddTaints(*slice, device, rules);
      if (features.partitionable_devices) AddSets(*slice, device);
    }
  }
  first_device_.push_back(static_cast<uint32_t>(devices_.size()));
  contents_ = static_cast<uint32_t>(contents.size());
}

void Generation::AddTaints(const ResourceSlice& slice, const Device& device,
                           const std::vector<DeviceTaintRule>& rules) {
  for (const DeviceTaint& taint : device.taints) {
    if (Prevents(taint)) taints_.push_back(&taint);
  }
  for (const DeviceTaintRule& rule : rules) {
    if (Prevents(rule.taint) && Selects(rule, slice.driver, slice.pool, device.name)) {
      taints_.push_back(&rule.taint);
    }
  }
}

void Generation::AddSets(const ResourceSlice& slice, const Device& device) {
  for (const Consumption& consumption : *device.consumes) {
    const auto set = counters_.Find(ScopeOf(slice), consumption.counter_set);
    sets_.push_back(set.value_or(0));
    if (!problem_.empty()) continue;
    if (!set) {
      problem_ = fmt::format("device {} consumes counters of {}, which does not exist",
                             device.name.str(), consumption.counter_set.str());
    } else if (const Name* unknown =
                   CounterSets::FirstUnknown(*counters_.at(*set).set, consumption.counters)) {
      problem_ = fmt::format("device {} consumes counter {}, which {} does not have",
                             device.name.str(), unknown->str(), consumption.counter_set.str());
    }
  }
}

Generation::Memo& Generation::MemoOf(const Name& key) const {
  if (last_memo_ != nullptr && last_key_ == key) return *last_memo_;
  if (memos_.size() >= kMaxMemos && !memos_.contains(key)) memos_.clear();
  last_memo_ = &memos_.try_emplace(key).first->second;
  last_memo_->resize(contents_);
  last_key_ = key;
  return *last_memo_;
}

Generation::Answer Generation::Matches(const Name& key, const std::vector<std::string>& selectors,
                                       uint32_t device,
                                       const DeviceExpressions& expressions) const {
  if (selectors.empty()) return Answer::kYes;
  Answer& known = MemoOf(key)[devices_[device].content];
  if (known != Answer::kUnknown) return known;
  known = Answer::kYes;
  const Device& candidate = *devices_[device].device;
  for (const std::string& selector : selectors) {
    const Result<bool> matches = expressions.Matches(selector, *devices_[device].slice, candidate);
    if (!matches.ok() || !*matches) {
      known = matches.ok() ? Answer::kNo : Answer::kError;
      break;
    }
  }
  return known;
}

const GpuTable& Generation::GpusBy(const std::shared_ptr<GpuReader>& reader) const {
  if (gpus_ != nullptr && gpus_->reader() == reader) return *gpus_;
  auto gpus = std::make_unique<GpuTable>(reader);
  for (const PoolDevice& device : devices_) gpus->Add(*device.slice, *device.device);
  gpus_ = std::move(gpus);
  return *gpus_;
}

void Generation::Attach(PoolUse& use) {
  if (use.empty()) return;
  std::unordered_set<Name> listed;
  for (PoolDevice& device : devices_) {
    const auto found = use.find(device.device->name);
    if (found == use.end()) continue;
    listed.insert(found->first);
    device.use = &found->second;
    found->second.consumes = device.device->consumes;
    found->second.seen = true;
    Account(device, true);
  }
  for (const auto& [name, device_use] : use) {
    if (!listed.contains(name)) AccountUnlisted(device_use, true);
  }
  if (has_groups_) UpdateCompatibility();
}

void Generation::Follow(const Name& device, DeviceUse& use, bool was_used) {
  const bool used = !use.empty();
  bool listed = false;
  for (PoolDevice& candidate : devices_) {
    if (candidate.device->name != device) continue;
    listed = true;
    candidate.use = used ? &use : nullptr;
    use.consumes = candidate.device->consumes;
    use.seen = true;
    if (used != was_used) Account(candidate, used);
  }
  if (used == was_used) return;
  if (!listed) AccountUnlisted(use, used);
  if (has_groups_) UpdateCompatibility();
}

void Generation::Account(const PoolDevice& device, bool take) {
  if (counters_.size() == 0 || !problem_.empty()) return;
  const Consumptions& consumes = *device.device->consumes;
  for (size_t i = 0; i < consumes.size(); ++i) {
    counters_.Consume(SetOf(device, i), consumes[i].counters, take);
  }
}

void Generation::AccountUnlisted(const DeviceUse& use, bool take) {
  if (!use.seen) return;
  for (const Consumption& consumption : *use.consumes) {
    // Not found: the counters serve only the slice, which is not known for this device.
    const auto set = counters_.Find(Name(), consumption.counter_set);
    if (set) counters_.Consume(*set, consumption.counters, take);
  }
}

void Generation::UpdateCompatibility() {
  if (!problem_.empty()) return;  // devices may consume from sets that do not exist
  std::vector<Compatibility> sets(counters_.size());
  for (const PoolDevice& device : devices_) {
    if (device.use == nullptr) continue;
    const Consumptions& consumes = *device.device->consumes;
    for (size_t i = 0; i < consumes.size(); ++i) sets[SetOf(device, i)].Add(consumes[i].groups);
  }
  for (size_t i = 0; i < sets.size(); ++i) {
    counters_.SetCompatibility(static_cast<uint32_t>(i), std::move(sets[i]));
  }
}

}  // namespace nos::dra
