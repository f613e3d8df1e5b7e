// Which devices, and which states of a search, need not be tried twice.
//
// Two devices are alike if no selector, taint, constraint, capacity or counter of this call
// distinguishes them. Two states of the search are alike if renaming like groups of devices turns
// one into the other; a group is the devices that share counter sets, directly or through others:
// eight equal GPUs are eight like groups.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dra/allocation/draft.h"
#include "dra/allocation/screen.h"

namespace nos::dra {

// A place in the search: device number `taken` of a request is chosen next.
struct Place {
  size_t claim = 0, request = 0, alternative = 0;
  int64_t taken = 0;
  // The devices before this one are not considered for the request: their combinations have been
  // tried.
  uint32_t from = 0;
  bool last = false;                        // no request follows
  const PreparedRequest* chosen = nullptr;  // the alternative
};

class Symmetry {
 public:
  Symmetry(Screen& screen, Draft& draft, const std::vector<PreparedClaim>& claims);

  // Equal for devices that are alike in all they are read for, counters included.
  uint32_t ClassOf(uint32_t device) const { return classes_[device]; }

  // True if a state like the current one has failed before.
  bool HasFailed(const Place& place);
  void AddFailure(const Place& place);
  // The work of one look-up, in devices tried.
  int64_t cost() const { return static_cast<int64_t>(groups_.size()); }

 private:
  struct Group {
    std::vector<uint32_t> devices;  // ascending
    uint32_t kind = 0;              // equal for like groups
  };
  using Key = std::pair<size_t, size_t>;
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.first; }
  };

  void Classify(const std::vector<PreparedClaim>& claims);
  void MakeGroups();
  std::string KindOf(const Group& group) const;
  // "" if the group does not matter from this place on.
  std::string StateOf(size_t group, const Place& place,
                      const std::vector<std::vector<const Pick*>>& picks) const;
  Key KeyOf(const Place& place) const;

  Screen& screen_;
  Draft& draft_;
  std::vector<uint32_t> classes_, local_classes_;  // by device; local: without counters
  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_;         // by device
  std::vector<size_t> constraint_counts_;  // by claim
  std::unordered_set<Key, KeyHash> failed_;
};

}  // namespace nos::dra
