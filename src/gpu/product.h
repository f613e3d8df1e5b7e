// Names the product of a GPU and its sharing mode, as Events, metrics and the dashboard show them.
//
//   ProductOf(*catalogue.FindSharingModes("H100-80GB+GPU+TIME-4"));     // "H100-80GB"
//   SharingModeOf(model, placements);     // "time slices"; "" if the GPU is unused
//   SharingModesOf(model, other);         // {"MIG", "MPS", "time slices", ...}
//
// Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/catalogue.h"

namespace nos::gpu {

inline constexpr std::string_view kMigMode = "MIG", kMpsMode = "MPS",
                                  kTimeSlicingMode = "time slices", kWholeMode = "whole";

// The model's name without its sharing-mode suffixes: "GPU-47GB" for "GPU-47GB+GPU+TIME-4", "A30"
// for "A30+4g.24gb.mps2". A share model ("MPS-79GB") does not name its product, so the result is
// its memory: "79GB".
std::string ProductOf(std::string_view model);
// For a GPU of `model` that may switch to `other` and that its node's label calls `product`. If
// `model` is a share model, the product comes from `other`, else from `product`. Both may be null.
std::string ProductOf(const Model& model, const Model* other, const Model* product = nullptr);

// The processor's architecture in the words of the label kubernetes.io/arch: "arm64" for superchips
// with a Grace processor (GH200, GB200, GB300, GB10), "amd64" for all others, which servers of both
// kinds may have. `product`: a model of the catalogue, or a product as in nvidia.com/gpu.product.
// Source: the names of docs.nvidia.com/grace-hopper and docs.nvidia.com/multi-node-nvlink-systems.
std::string_view ArchitectureOfHost(std::string_view product);

// The sharing mode of a GPU that has an instance of this profile: "gpu", "shared", "10gb",
// "1g.5gb".
std::string_view SharingModeOfProfile(std::string_view profile);
// "" if the GPU has no instances: then it can use any of its modes.
std::string_view SharingModeOf(const Model& model, std::span<const Placement> there);
// The modes that an empty GPU can use, in this order: MIG, MPS, time slices, whole. `other`: the
// model that it may switch to; null if there is none.
std::vector<std::string_view> SharingModesOf(const Model& model, const Model* other);

}  // namespace nos::gpu
