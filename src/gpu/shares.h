// GPUs that are shared by memory (MPS): any number of whole GiB a share, wherever it lies.
//
//   const Model& model = SharesOf(79);            // "MPS-79GB"
//   const Model& few = SharesOf(79, 16);          // "MPS-79GB+CLIENTS-16"
//   auto profile = model.FindProfile("10gb");     // or "nvidia.com/gpu-10gb"
//
// A share is an instance like any other: its profile says how much memory it has, its start is its
// number on the GPU, 0 to kMostClients - 1, which tells equal shares apart and means nothing else.
// Shares fit while their memory and their number do: such a model is counted() and has no layout
// table.
//
// Thread-safe; the models are made once and live as long as the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gpu/catalogue.h"

namespace nos::gpu {

// CUDA clients of one GPU under MPS: 48 up to CUDA 13.0, 60 since; each share has one at least.
// Source: NVIDIA MPS documentation, "Limitations".
inline constexpr int kMostShares = 48;      // where nothing else is said
inline constexpr int kMostClients = 60;     // more are not believed
inline constexpr int kMostShareGib = 255;   // of one share
inline constexpr int kMostSharedGib = 960;  // of one GPU; more are not believed
// What the MPS server and its clients' contexts take of a GPU besides, in MiB.
inline constexpr int kShareOverheadMib = 512;

// A GPU that has so much for shares, and so many of them at most: 1 to kMostSharedGib and to
// kMostClients, others are brought within.
const Model& SharesOf(int gib, int clients = kMostShares);
// Of what the driver says the GPU has: whole GiB, never rounded up. Null: not even one.
const Model* SharesOfMemory(int64_t mib, int clients = kMostShares);
// The same for who was told by others. A model takes some 100 kB and stays: as soon as there are
// kMostShareModels, no others are made. Null: it would be such a one.
const Model* FindShares(int gib, int clients);
inline constexpr size_t kMostShareModels = 512;
// By its name. Null: there is no such, or there are too many.
const Model* FindShares(std::string_view name);

// "nvidia.com/gpu-10gb", and no other way to write it.
bool IsShareResource(std::string_view resource);

}  // namespace nos::gpu
