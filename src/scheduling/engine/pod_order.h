// Compares pods by identity and age.
#pragma once

#include <tuple>

#include "cluster/objects.h"

namespace nos::scheduling {

inline bool IsSame(const cluster::Pod& a, const cluster::Pod& b) {
  return a.meta.name == b.meta.name && a.meta.ns == b.meta.ns;
}

// Earlier creation first, then the lower key.
inline bool IsOlder(const cluster::Pod& a, const cluster::Pod& b) {
  return std::tuple(a.meta.created, a.Key()) < std::tuple(b.meta.created, b.Key());
}

}  // namespace nos::scheduling
