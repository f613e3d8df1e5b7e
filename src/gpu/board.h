// Which board a GPU is, and in which way it is used, in the words that people read everywhere.
//
//   BoardOf(*catalogue.FindModes("H100-80GB+GPU+TIME-4"));     // "H100-80GB"
//   WayOf(model, placements);                                  // "time slices"; "" of none
//   WaysOf(model, other);                                      // {"MIG", "MPS", "time slices", ..}
//
// Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/catalogue.h"

namespace nos::gpu {

inline constexpr std::string_view kMigWay = "MIG", kMpsWay = "MPS", kTimeWay = "time slices",
                                  kWholeWay = "whole";

// The name without what else the model may be: "GPU-47GB" of "GPU-47GB+GPU+TIME-4", "A30" of
// "A30+4g.24gb.mps2". Of shares, whose name ("MPS-79GB") tells no board, their memory: "79GB".
std::string BoardOf(std::string_view model);
// The same of a GPU that may be `other` instead, and is `product` by its node's label: what knows
// the board counts. Either may be null.
std::string BoardOf(const Model& model, const Model* other, const Model* product = nullptr);

// What a GPU with an instance of this name is used as: "gpu", "shared", "10gb", "1g.5gb".
std::string_view WayOfProfile(std::string_view profile);
// "": nothing lies on it, so it may be used in any of its ways.
std::string_view WayOf(const Model& model, std::span<const Placement> there);
// Those that it may be used in, if nothing is on it: MIG, MPS, time slices, whole, in this order.
// `other`: what else it may be; null: nothing.
std::vector<std::string_view> WaysOf(const Model& model, const Model* other);

}  // namespace nos::gpu
