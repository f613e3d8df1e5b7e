// The slices of one generation of a pool, as devices and counters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dra/counters/sets.h"
#include "dra/features.h"
#include "dra/objects.h"
#include "dra/placement/gpus.h"
#include "dra/selectors.h"

namespace nos::dra {

// The use of one device by allocated claims.
struct DeviceUse {
  uint32_t exclusive = 0;  // claims that have the device alone; more than one: a fault elsewhere
  uint32_t shares = 0;     // claims that share it
  Amounts consumed;        // capacity of all shares
  Interned<Consumptions, ConsumptionsHash> consumes;  // when a slice last listed the device
  bool seen = false;                                  // a slice has listed it
  bool empty() const { return exclusive == 0 && shares == 0; }
};
using PoolUse = std::unordered_map<Name, DeviceUse>;

struct PoolDevice {
  const ResourceSlice* slice = nullptr;
  const Device* device = nullptr;
  const DeviceUse* use = nullptr;  // null: free
  uint32_t first_set = 0;          // for Generation::SetOf
  uint32_t first_taint = 0;        // for Generation::TaintsOf
  uint32_t content = 0;            // equal for devices of a driver that no selector distinguishes
};

using SlicePointer = std::shared_ptr<const ResourceSlice>;

class Generation {
 public:
  // `slices` are sorted by name; slices that these features hide are left out. Refers to `rules`.
  Generation(std::vector<SlicePointer> slices, const Features& features,
             const std::vector<DeviceTaintRule>& rules, PoolUse& use);

  const std::vector<SlicePointer>& slices() const { return slices_; }
  const std::vector<PoolDevice>& devices() const { return devices_; }
  const CounterSets& counters() const { return counters_; }
  // The counter set of the n-th consumption of the device.
  uint32_t SetOf(const PoolDevice& device, size_t n) const { return sets_[device.first_set + n]; }
  // The taints that prevent allocation, also by rules.
  std::span<const DeviceTaint* const> TaintsOf(const PoolDevice& device) const {
    const bool last = &device == &devices_.back();
    const size_t end = last ? taints_.size() : (&device + 1)->first_taint;
    return std::span(taints_).subspan(device.first_taint, end - device.first_taint);
  }
  // The devices of the slice with this index: [first, last).
  std::pair<uint32_t, uint32_t> DevicesOf(size_t slice) const {
    return {first_device_[slice], first_device_[slice + 1]};
  }
  // Why no device may be used; "" if they may.
  const std::string& problem() const { return problem_; }

  // The answer of all expressions of a selector for a device, evaluated in order.
  enum class Answer : uint8_t { kUnknown, kNo, kYes, kError };
  // `key` identifies the expressions.
  Answer Matches(const Name& key, const std::vector<std::string>& selectors, uint32_t device,
                 const DeviceExpressions& expressions) const;

  // The GPUs of the devices, as this reader sees them.
  const GpuTable& GpusBy(const std::shared_ptr<GpuReader>& reader) const;

  // Follows the use of a device. `was_used`: before this change.
  void Follow(const Name& device, DeviceUse& use, bool was_used);

 private:
  using Memo = std::vector<Answer>;  // answers of one selector, by PoolDevice::content

  Memo& MemoOf(const Name& key) const;
  void AddCounters(const Features& features);
  void AddDevices(const Features& features, const std::vector<DeviceTaintRule>& rules);
  void AddTaints(const ResourceSlice& slice, const Device& device,
                 const std::vector<DeviceTaintRule>& rules);
  void AddSets(const ResourceSlice& slice, const Device& device);
  void Attach(PoolUse& use);
  // Counters of a device that this generation lists, and of one that it does not.
  void Account(const PoolDevice& device, bool take);
  void AccountUnlisted(const DeviceUse& use, bool take);
  void UpdateCompatibility();

  std::vector<SlicePointer> slices_;
  std::vector<PoolDevice> devices_;
  std::vector<uint32_t> first_device_;  // by slice, and one more
  std::vector<uint32_t> sets_;
  std::vector<const DeviceTaint*> taints_;
  uint32_t contents_ = 0;
  CounterSets counters_;
  bool has_groups_ = false;  // compatibility groups are in use
  std::string problem_;
  mutable std::unordered_map<Name, Memo> memos_;
  // The one used last: a request asks for all devices, one after the other.
  mutable Name last_key_;
  mutable Memo* last_memo_ = nullptr;
  mutable std::unique_ptr<const GpuTable> gpus_;
};

// True if a device of the slice names compatibility groups.
bool NamesGroups(const ResourceSlice& slice);

}  // namespace nos::dra
