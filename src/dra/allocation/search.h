// Depth-first search for devices: claim by claim, request by request, device by device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "dra/allocation/draft.h"
#include "dra/allocation/screen.h"
#include "dra/allocation/symmetry.h"

namespace nos::dra {

// Index of the alternative that a request with so many of them tries first.
inline size_t FirstTried(size_t alternatives, const AllocationOptions& options) {
  return std::min(options.first_alternative + 1, alternatives) - 1;
}

class Search {
 public:
  Search(Screen& screen, Draft& draft, const std::vector<PreparedClaim>& claims,
         const AllocationOptions& options)
      : screen_(screen), draft_(draft), claims_(claims), options_(options) {}

  // kYes: the draft has a solution. kStop: see `fault`; without a fault, the steps are used up.
  enum class Found { kYes, kNo, kStop };
  Found Run();

  const std::optional<AllocationFault>& fault() const { return fault_; }
  int64_t steps() const { return steps_ + screen_.steps(); }

 private:
  Found CheckCounts();
  bool MayFit() const;
  // True if a device has a fault for the request, which ends the search when it is reached.
  bool HasFault(size_t claim, const PreparedRequest& request);
  Found PlaceRequest(size_t claim, size_t request);
  Found PlaceDevices(const PreparedRequest& request, Place place);
  Found PlaceAll(const PreparedRequest& request, size_t claim, size_t index, size_t next);
  Found TryFrom(const PreparedRequest& request, const Place& place,
                const std::vector<Candidate>& candidates);
  Found TryRanked(const PreparedRequest& request, const Place& place,
                  const std::vector<Candidate>& candidates);
  // Takes the candidate and continues. `tried`: classes of devices that failed at this level.
  Found Try(const PreparedRequest& request, const Place& place, const Candidate& candidate,
            std::vector<uint32_t>& tried);
  // Which fault is reached first depends on the order, so it is kube-scheduler's then.
  bool IsRanked() const { return options_.ranking != nullptr && !faults_; }
  bool IsKnownToFail(const Place& place);
  bool IsLikeTried(uint32_t device, const std::vector<uint32_t>& tried);
  void NoteTried(uint32_t device, std::vector<uint32_t>& tried);
  bool ComparesDevices();
  bool Step(int64_t count);
  Symmetry& symmetry();

  Screen& screen_;
  Draft& draft_;
  const std::vector<PreparedClaim>& claims_;
  const AllocationOptions& options_;
  std::optional<Symmetry> symmetry_;
  std::optional<bool> compares_;
  std::optional<AllocationFault> fault_, excluded_;
  int64_t steps_ = 0;
  int64_t failures_ = 0;
  // A device is at fault: pruning could hide a fault that kube-scheduler would report.
  bool faults_ = false;
};

}  // namespace nos::dra
