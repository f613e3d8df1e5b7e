// The order in which pending pods get slices: higher priority first, then earlier creation, then
// the lower key.
//
//   std::ranges::sort(pods, {}, [](const auto& pod) { return RankOf(*pod); });
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "cluster/objects.h"

namespace nos::controllers {

inline std::tuple<int64_t, Time, std::string> RankOf(const cluster::Pod& pod) {
  return {-int64_t{pod.priority}, pod.meta.created, pod.Key()};
}

}  // namespace nos::controllers
