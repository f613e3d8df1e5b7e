#include "dra/allocation/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace nos::dra {
namespace {

constexpr int64_t kMaxResults = 32;  // AllocationResultsMaxSize
// States are compared with failed ones once so many attempts have failed: easy searches end before.
constexpr int64_t kEasyFailures = 64;
// The first look at a device costs about this part of an attempt to take it.
constexpr int64_t kScreenedPerStep = 8;

}  // namespace

Search::Found Search::Run() {
  const Found counted = CheckCounts();
  if (counted != Found::kYes) return counted;
  if (!faults_ && !MayFit()) return Found::kNo;
  const Found found = PlaceRequest(0, 0);
  if (found != Found::kNo || !excluded_) return found;
  fault_ = excluded_;
  return Found::kStop;
}

// Faults and counts of "all devices", which depend on the node.
Search::Found Search::CheckCounts() {
  for (const PreparedClaim& claim : claims_) {
    int64_t total = 0;
    for (const auto& alternatives : claim.requests) {
      int64_t least = std::numeric_limits<int64_t>::max();
      for (const PreparedRequest& request : alternatives) {
        if (!Step(static_cast<int64_t>(screen_.view().devices.size()) / kScreenedPerStep)) {
          return Found::kStop;
        }
        int64_t count = request.count;
        if (request.all) {
          count = static_cast<int64_t>(screen_.AllDevices(request, fault_).size());
          if (fault_) return Found::kStop;
        } else {
          faults_ = faults_ || HasFault(static_cast<size_t>(&claim - claims_.data()), request);
        }
        if (screen_.exhausted()) return Found::kStop;
        least = std::min(least, count);
      }
      if (least > kMaxResults - total) {
        fault_ = {
            Fault::kTooManyDevices,
            fmt::format("request {} needs {} devices beside {} others; a claim has at most {}",
                        alternatives.front().parent, least, total, kMaxResults),
            false};
        return Found::kStop;
      }
      total += std::max<int64_t>(least, 0);
    }
  }
  return Found::kYes;
}

bool Search::HasFault(size_t claim, const PreparedRequest& request) {
  const auto& candidates = screen_.Candidates(request);
  const auto fails = [&](const Candidate& candidate) {
    if (candidate.fault != Fault::kNone) return true;
    return std::any_of(
        request.constraints.begin(), request.constraints.end(), [&](size_t constraint) {
          return FindDerived(request, claims_[claim].constraints[constraint].attribute) !=
                     nullptr &&
                 draft_.Lookup(claim, constraint, request, candidate.device) == nullptr;
        });
  };
  return std::any_of(candidates.begin(), candidates.end(), fails);
}

// False if a request has too few devices whatever the others take.
bool Search::MayFit() const {
  const auto may_fit = [&](const PreparedRequest& request) {
    return request.all || static_cast<int64_t>(screen_.Candidates(request).size()) >= request.count;
  };
  return std::all_of(claims_.begin(), claims_.end(), [&](const PreparedClaim& claim) {
    return std::all_of(claim.requests.begin(), claim.requests.end(), [&](const auto& alternatives) {
      return std::any_of(alternatives.begin(), alternatives.end(), may_fit);
    });
  });
}

Search::Found Search::PlaceRequest(size_t claim, size_t request) {
  while (claim < claims_.size() && request >= claims_[claim].requests.size()) {
    ++claim;
    request = 0;
  }
  if (claim == claims_.size()) return Found::kYes;
  bool last = request + 1 == claims_[claim].requests.size();
  for (size_t later = claim + 1; later < claims_.size(); ++later) {
    last = last && claims_[later].requests.empty();
  }
  const auto& alternatives = claims_[claim].requests[request];
  const size_t first = FirstTried(alternatives.size(), options_);
  for (size_t n = 0; n < alternatives.size(); ++n) {
    const size_t i = (first + n) % alternatives.size();
    const Found found =
        alternatives[i].all
            ? PlaceAll(alternatives[i], claim, 0, request + 1)
            : PlaceDevices(alternatives[i], {claim, request, i, 0, 0, last, &alternatives[i]});
    if (found != Found::kNo) return found;
  }
  return Found::kNo;
}

Search::Found Search::PlaceAll(const PreparedRequest& request, size_t claim, size_t index,
                               size_t next) {
  const auto& devices = screen_.AllDevices(request, fault_);
  if (devices.empty()) return Found::kNo;
  if (index == devices.size()) return PlaceRequest(claim, next);
  if (draft_.PicksOf(claim) + devices.size() - index > kMaxResults) return Found::kNo;
  if (!Step(1)) return Found::kStop;
  const uint32_t device = devices[index].device;
  if (!screen_.MayServe(request, screen_.view().devices[device])) return Found::kNo;
  const Draft::Answer answer = draft_.Take(claim, request, device);
  if (answer == Draft::Answer::kFault) {
    fault_ = draft_.fault();
    return Found::kStop;
  }
  if (answer == Draft::Answer::kConstraint && !excluded_) {
    excluded_ = {
        Fault::kConstraintExcludesAll,
        fmt::format("request {} asks for all devices, but a constraint excludes {}", request.name,
                    screen_.view().Find(screen_.view().devices[device]).device->name.str()),
        false};
  }
  if (answer != Draft::Answer::kYes) return Found::kNo;
  const Found found = PlaceAll(request, claim, index + 1, next);
  if (found == Found::kNo) draft_.Undo();
  return found;
}

Search::Found Search::PlaceDevices(const PreparedRequest& request, Place place) {
  if (place.taken >= request.count) return PlaceRequest(place.claim, place.request + 1);
  const auto picked = static_cast<int64_t>(draft_.PicksOf(place.claim));
  if (request.count - place.taken > kMaxResults - picked) return Found::kNo;
  if (IsKnownToFail(place)) return Found::kNo;
  const auto& candidates = screen_.Candidates(request);
  const Found found =
      IsRanked() ? TryRanked(request, place, candidates) : TryFrom(request, place, candidates);
  if (found == Found::kNo) {
    ++failures_;
    if (symmetry_) symmetry_->AddFailure(place);
  }
  return found;
}

bool Search::IsKnownToFail(const Place& place) {
  if (faults_ || (failures_ < kEasyFailures && !IsRanked())) return false;
  if (failures_ == 0 || !ComparesDevices()) return false;
  steps_ += symmetry().cost();
  return symmetry().HasFailed(place);
}

Search::Found Search::TryFrom(const PreparedRequest& request, const Place& place,
                              const std::vector<Candidate>& candidates) {
  std::vector<uint32_t> tried;
  const auto first = std::lower_bound(
      candidates.begin(), candidates.end(), place.from,
      [](const Candidate& candidate, uint32_t from) { return candidate.device < from; });
  for (auto candidate = first; candidate != candidates.end(); ++candidate) {
    // Too few are left for the rest of the request.
    if (!faults_ && candidates.end() - candidate < request.count - place.taken) break;
    const Found found = Try(request, place, *candidate, tried);
    if (found != Found::kNo) return found;
  }
  return Found::kNo;
}

Search::Found Search::TryRanked(const PreparedRequest& request, const Place& place,
                                const std::vector<Candidate>& candidates) {
  std::vector<DeviceChoice> chosen, devices;
  for (const Pick& pick : draft_.picks()) chosen.push_back({pick.device});
  devices.reserve(candidates.size());
  if (!Step(static_cast<int64_t>(candidates.size()) / kScreenedPerStep)) return Found::kStop;
  for (const Candidate& candidate : candidates) {
    // Before the first choice the screen has looked already.
    if (chosen.empty() || draft_.IsFree(place.claim, request, candidate.device)) {
      devices.push_back({candidate.device});
    }
  }
  options_.ranking->Rank(screen_.view(), chosen, devices);
  std::vector<uint32_t> tried;
  for (const DeviceChoice& device : devices) {
    const Found found = Try(request, place, {device.index, Fault::kNone}, tried);
    if (found != Found::kNo) return found;
  }
  return Found::kNo;
}

Search::Found Search::Try(const PreparedRequest& request, const Place& place,
                          const Candidate& candidate, std::vector<uint32_t>& tried) {
  if (!Step(1)) return Found::kStop;
  const uint32_t device = candidate.device;
  if (draft_.IsOfRequest(request, device)) return Found::kNo;
  if (candidate.fault != Fault::kNone) {
    if (draft_.IsInUse(place.claim, request, device)) return Found::kNo;
    fault_ = screen_.Describe(request, candidate);
    return Found::kStop;
  }
  if (IsLikeTried(device, tried)) return Found::kNo;
  const Draft::Answer answer = draft_.Take(place.claim, request, device);
  if (answer == Draft::Answer::kFault) {
    fault_ = draft_.fault();
    return Found::kStop;
  }
  if (answer != Draft::Answer::kYes) return Found::kNo;
  Place next = place;
  ++next.taken;
  if (!IsRanked()) next.from = device + 1;
  const Found found = PlaceDevices(request, next);
  if (found != Found::kNo) return found;
  draft_.Undo();
  NoteTried(device, tried);
  return found;
}

// Devices that are chosen already, for another claim or as a share, are like no other.
bool Search::IsLikeTried(uint32_t device, const std::vector<uint32_t>& tried) {
  return !tried.empty() && !draft_.IsTouched(device) &&
         std::find(tried.begin(), tried.end(), symmetry().ClassOf(device)) != tried.end();
}

void Search::NoteTried(uint32_t device, std::vector<uint32_t>& tried) {
  if (faults_ || draft_.IsTouched(device) || !ComparesDevices()) return;
  tried.push_back(symmetry().ClassOf(device));
}

// Comparing all devices must not cost more than the search may.
bool Search::ComparesDevices() {
  if (compares_) return *compares_;
  int64_t reads = 0;
  for (const PreparedClaim& claim : claims_) {
    for (const auto& alternatives : claim.requests) {
      reads += static_cast<int64_t>(alternatives.size() * (1 + claim.constraints.size()));
    }
  }
  compares_ = reads * static_cast<int64_t>(screen_.view().devices.size()) <= options_.max_steps;
  return *compares_;
}

bool Search::Step(int64_t count) {
  steps_ += count;
  return steps() <= options_.max_steps;
}

Symmetry& Search::symmetry() {
  if (!symmetry_) {
    steps_ += static_cast<int64_t>(screen_.view().devices.size());
    symmetry_.emplace(screen_, draft_, claims_);
  }
  return *symmetry_;
}

}  // namespace nos::dra
