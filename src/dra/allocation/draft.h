// The devices chosen so far in a search, and what is left beside them. Choices are undone in
// reverse order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "dra/allocation/screen.h"
#include "dra/constraints/attribute_constraint.h"

namespace nos::dra {

struct Pick {
  const PreparedRequest* request = nullptr;
  size_t claim = 0;
  uint32_t device = 0;
  const Amounts* share = nullptr;  // capacity consumed of a device that is shared
  bool counted = false;            // its counters are consumed
};

class Draft {
 public:
  Draft(Screen& screen, const std::vector<PreparedClaim>& claims);

  enum class Answer { kYes, kNo, kConstraint, kFault };
  Answer Take(size_t claim, const PreparedRequest& request, uint32_t device);
  void Undo();
  // True if a claim has the device, so that the request cannot have it too.
  bool IsInUse(size_t claim, const PreparedRequest& request, uint32_t device) const;
  // True if the device is free for the request beside the choices so far; constraints and capacity
  // are not considered.
  bool IsFree(size_t claim, const PreparedRequest& request, uint32_t device) const;

  // True if the request has the device already: a share, or admin access.
  bool IsOfRequest(const PreparedRequest& request, uint32_t device) const;
  bool IsTouched(uint32_t device) const { return holders_[device] > 0 || shares_[device] > 0; }

  const std::vector<Pick>& picks() const { return picks_; }
  size_t PicksOf(size_t claim) const { return counts_[claim]; }
  // Set by kFault.
  const AllocationFault& fault() const { return fault_; }
  const AttributeConstraint& constraint(size_t claim, size_t index) const {
    return constraints_[claim][index];
  }
  // The value that a constraint reads; null: the device lacks it, or its expression fails.
  const Attribute* Lookup(size_t claim, size_t constraint, const PreparedRequest& request,
                          uint32_t device);

 private:
  // Counters of one pool that the choices consume.
  struct PoolDraft {
    std::vector<std::vector<Quantity>> used;  // by set; empty: none
    std::vector<Compatibility> compatibility;
  };

  const PoolDevice& Find(uint32_t device) const {
    return screen_.view().Find(screen_.view().devices[device]);
  }
  bool Holds(size_t claim, uint32_t device) const;
  // True if a share of the device consumes its counters already.
  bool CountersTaken(uint32_t device) const;
  bool CountersFit(uint32_t device) const;
  void Consume(uint32_t device, bool take);
  void RebuildCompatibility(uint32_t pool);
  Answer AddConstraints(size_t claim, const PreparedRequest& request, uint32_t device);
  void RemoveConstraints(size_t claim, const PreparedRequest& request, size_t count);
  bool ShareFits(uint32_t device, const Amounts& amounts) const;

  Screen& screen_;
  const std::vector<PreparedClaim>& claims_;
  std::vector<std::vector<AttributeConstraint>> constraints_;  // by claim
  std::vector<Pick> picks_;
  std::vector<size_t> counts_;     // by claim
  std::vector<uint16_t> holders_;  // by device; shared devices do not count
  std::vector<uint16_t> shares_;   // by device
  std::vector<PoolDraft> pools_;   // by pool
  std::map<std::tuple<const void*, const void*, const void*, bool, const void*>,
           std::optional<Attribute>>
      derived_;  // by expression and what it depends on
  std::map<std::pair<const void*, const void*>, Name> short_names_;  // by attribute and driver
  AllocationFault fault_;
};

}  // namespace nos::dra
