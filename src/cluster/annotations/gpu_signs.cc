#include "cluster/gpu_signs.h"

#include <string_view>

#include "cluster/annotations.h"

namespace nos::cluster {
namespace {

bool IsOfNos(std::string_view key) {
  return key.starts_with(kPrefix) || key.starts_with(kOldPrefix);
}

bool IsOfGpus(std::string_view key) {
  return IsOfNos(key) || key == kProductLabel || key == kCountLabel;
}

// True if `a` and `b` have equal values for all keys that `is_read` accepts.
template <typename IsRead>
bool AreSame(const StringMap& a, const StringMap& b, IsRead is_read) {
  if (a == b) return true;
  const auto has_all = [&](const StringMap& from, const StringMap& of) {
    for (const auto& [key, value] : of) {
      if (!is_read(key)) continue;
      const auto found = from.find(key);
      if (found == from.end() || found->second != value) return false;
    }
    return true;
  };
  return has_all(a, b) && has_all(b, a);
}

}  // namespace

bool HaveSameGpuSigns(const Node& before, const Node& after) {
  if (!IsManaged(before) && !IsManaged(after)) return true;
  return AreSame(before.meta.annotations, after.meta.annotations, IsOfNos) &&
         AreSame(before.meta.labels, after.meta.labels, IsOfGpus);
}

}  // namespace nos::cluster
