#include "dra/counters/compatibility.h"

#include <algorithm>

namespace nos::dra {
namespace {

std::vector<Name> Common(const std::vector<Name>& a, const std::vector<Name>& b) {
  std::vector<Name> common;
  for (const Name& name : a) {
    if (std::find(b.begin(), b.end(), name) != b.end()) common.push_back(name);
  }
  return common;
}

}  // namespace

bool Compatibility::Admits(const std::vector<Name>& groups) const {
  if (!occupied_) return true;
  if (contradictory_) return false;
  if (groups.empty() || common_.empty()) return groups.empty() && common_.empty();
  return !Common(common_, groups).empty();
}

void Compatibility::Add(const std::vector<Name>& groups) {
  if (!occupied_) {
    occupied_ = true;
    common_ = groups;
  } else if (!common_.empty() && !groups.empty()) {
    common_ = Common(common_, groups);
    contradictory_ = contradictory_ || common_.empty();
  }
}

}  // namespace nos::dra
