// Which devices may draw from one counter set together (compatibilityGroups): all of them share a
// group, or none of them names any.
#pragma once

#include <vector>

#include "dra/interned.h"

namespace nos::dra {

class Compatibility {
 public:
  bool Admits(const std::vector<Name>& groups) const;
  // Devices that have no group in common nevertheless, through a fault elsewhere: no further device
  // is admitted.
  void Add(const std::vector<Name>& groups);
  const std::vector<Name>& common() const { return common_; }
  bool occupied() const { return occupied_; }
  bool contradictory() const { return contradictory_; }
  friend bool operator==(const Compatibility&, const Compatibility&) = default;

 private:
  bool occupied_ = false;
  bool contradictory_ = false;
  std::vector<Name> common_;  // empty while occupied: the devices name no groups
};

}  // namespace nos::dra
