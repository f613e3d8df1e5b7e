#include "dra/allocation/screen.h"

#include <fmt/format.h>

#include <algorithm>

namespace nos::dra {
namespace {

Fault FaultOf(Consumed::Kind kind) {
  if (kind == Consumed::Kind::kNotRepresentable) return Fault::kCapacityNotRepresentable;
  return kind == Consumed::Kind::kNegative ? Fault::kNegativeCapacity : Fault::kNone;
}

std::string PathOf(const PoolDevice& device) {
  return fmt::format("{}/{}/{}", device.slice->driver.str(), device.slice->pool.str(),
                     device.device->name.str());
}

}  // namespace

const std::vector<Candidate>& Screen::Candidates(const PreparedRequest& request) {
  const auto [found, added] = candidates_.try_emplace(request.id);
  std::vector<Candidate>& candidates = found->second;
  if (!added) return candidates;
  const std::vector<uint32_t>* known = view_.NotExcluded(request.selectors_key);
  std::vector<uint32_t> left;
  const size_t count = known == nullptr ? view_.devices.size() : known->size();
  for (size_t n = 0; n < count; ++n) {
    const auto i = known == nullptr ? static_cast<uint32_t>(n) : (*known)[n];
    const ViewDevice& view_device = view_.devices[i];
    const PoolDevice& device = view_.Find(view_device);
    if (known == nullptr) left.push_back(i);
    if (!IsFree(request, device)) continue;
    const Generation::Answer answer = IsSelected(request, view_device);
    exhausted_ = exhausted_ || steps() > max_steps_;
    if (exhausted_) return candidates;
    if (answer == Generation::Answer::kNo) {
      if (known == nullptr) left.pop_back();
      continue;
    }
    Candidate candidate{i, Fault::kNone};
    if (answer == Generation::Answer::kError) {
      candidate.fault = Fault::kExpressionFailed;
    } else if (!CapacityFits(request, device, true, candidate.fault) ||
               (candidate.fault == Fault::kNone && !MayServe(request, view_device))) {
      continue;
    }
    candidates.push_back(candidate);
  }
  if (known == nullptr) view_.SetNotExcluded(request.selectors_key, std::move(left));
  return candidates;
}

const std::vector<Candidate>& Screen::AllDevices(const PreparedRequest& request,
                                                 std::optional<AllocationFault>& fault) {
  const auto [found, added] = all_.try_emplace(request.id);
  std::vector<Candidate>& devices = found->second;
  if (!added) return devices;
  for (const PoolView& pool : view_.pools) {
    if (pool.usable()) continue;
    fault = {pool.incomplete ? Fault::kPoolIncomplete : Fault::kPoolInvalid,
             fmt::format("request {} asks for all devices, but pool {} {}", request.name,
                         pool.id.ToString(),
                         pool.incomplete ? "is being updated" : "is invalid: " + pool.problem),
             false};
    return devices;
  }
  for (uint32_t i = 0; i < view_.devices.size(); ++i) {
    const Generation::Answer answer = IsSelected(request, view_.devices[i]);
    exhausted_ = exhausted_ || steps() > max_steps_;
    if (exhausted_) break;
    if (answer == Generation::Answer::kNo) continue;
    Candidate candidate{i, Fault::kNone};
    if (answer == Generation::Answer::kError) {
      candidate.fault = Fault::kExpressionFailed;
    } else if (!CapacityFits(request, view_.Find(view_.devices[i]), false, candidate.fault)) {
      continue;
    }
    if (candidate.fault != Fault::kNone) {
      fault = Describe(request, candidate);
      return devices;
    }
    devices.push_back(candidate);
  }
  return devices;
}

bool Screen::IsFree(const PreparedRequest& request, const PoolDevice& device) const {
  if (request.admin || device.use == nullptr) return true;
  return device.use->exclusive == 0 && (device.use->shares == 0 || Sharable(*device.device));
}

Generation::Answer Screen::IsSelected(const PreparedRequest& request,
                                      const ViewDevice& device) const {
  const Device& candidate = *view_.Find(device).device;
  if (!features_.binding_conditions && !candidate.binding_conditions.empty()) {
    return Generation::Answer::kNo;
  }
  return view_.pools[device.pool].generation->Matches(request.selectors_key, request.selectors,
                                                      device.index, expressions_);
}

const Consumed& Screen::ConsumedOf(const PreparedRequest& request, const Device& device) {
  const std::pair<size_t, const void*> key{request.id, device.capacity.id()};
  if (last_consumed_ != nullptr && last_consumed_->first == key) return last_consumed_->second;
  const auto [found, added] = consumed_.try_emplace(key);
  if (added) {
    found->second =
        ConsumedBy(request.spec->capacity, *device.capacity, features_.fractional_capacity);
  }
  last_consumed_ = &*found;
  return found->second;
}

bool Screen::CapacityFits(const PreparedRequest& request, const PoolDevice& device, bool in_use,
                          Fault& fault) {
  if (!features_.consumable_capacity) return true;
  const Consumed& consumed = ConsumedOf(request, *device.device);
  fault = FaultOf(consumed.kind);
  if (fault != Fault::kNone) return true;
  if (consumed.kind != Consumed::Kind::kOk) return false;
  if (!in_use || device.use == nullptr) return consumed.fits_unused;
  return Fits(consumed.amounts, device.use->consumed, *device.device->capacity);
}

bool Screen::MayServe(const PreparedRequest& request, const ViewDevice& view_device) const {
  const PoolDevice& device = view_.Find(view_device);
  if (!device.slice->skip_node_operations.empty() &&
      !(features_.optional_node_operations && view_.optional_node_operations)) {
    return false;
  }
  if (!features_.partitionable_devices && !device.device->consumes->empty()) return false;
  const auto tolerated = [&](const DeviceTaint* taint) {
    return std::any_of(
        request.spec->tolerations.begin(), request.spec->tolerations.end(),
        [&](const DeviceToleration& toleration) { return Tolerates(toleration, *taint); });
  };
  const auto taints = view_.pools[view_device.pool].generation->TaintsOf(device);
  if (!std::all_of(taints.begin(), taints.end(), tolerated)) return false;
  return request.admin || CountersFit(view_device, device);
}

bool Screen::CountersFit(const ViewDevice& view_device, const PoolDevice& device) const {
  // The counters of a shared device are consumed once.
  if (device.use != nullptr && device.use->shares > 0) return true;
  const Generation& generation = *view_.pools[view_device.pool].generation;
  const Consumptions& consumes = *device.device->consumes;
  for (size_t i = 0; i < consumes.size(); ++i) {
    const CounterState& state = generation.counters().at(generation.SetOf(device, i));
    if (features_.compatibility_groups && !state.compatibility.Admits(consumes[i].groups)) {
      return false;
    }
    bool enough = true;
    ForEachNeed(*state.set, consumes[i].counters, [&](size_t counter, Quantity amount) {
      enough = enough && amount <= state.left[counter];
    });
    if (!enough) return false;
  }
  return true;
}

AllocationFault Screen::Describe(const PreparedRequest& request, const Candidate& candidate) {
  const PoolDevice& device = view_.Find(view_.devices[candidate.device]);
  if (candidate.fault != Fault::kExpressionFailed) {
    const Consumed& consumed = ConsumedOf(request, *device.device);
    return {candidate.fault,
            fmt::format("request {} for capacity {} of device {} {}", request.name,
                        consumed.faulty.str(), PathOf(device),
                        candidate.fault == Fault::kNegativeCapacity
                            ? "is negative"
                            : "cannot be represented in 64 bits"),
            false};
  }
  for (const std::string& selector : request.selectors) {
    const Result<bool> matches = expressions_.Matches(selector, *device.slice, *device.device);
    if (matches.ok()) continue;
    return {candidate.fault,
            fmt::format("request {}: selector '{}' fails for device {}: {}", request.name, selector,
                        PathOf(device), matches.status().message()),
            false};
  }
  return {candidate.fault, fmt::format("request {}: a selector fails", request.name), false};
}

}  // namespace nos::dra
