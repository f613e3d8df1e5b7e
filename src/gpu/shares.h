// GPU models shared by memory (MPS): a share has any whole number of GiB and fits anywhere.
//
//   const Model& model = SharesOf(79);            // "MPS-79GB"
//   const Model& few = SharesOf(79, 16);          // "MPS-79GB+CLIENTS-16"
//   auto profile = model.FindProfile("10gb");     // or "nvidia.com/gpu-10gb"
//
// A share is an instance: its profile states its memory. Its start is its number on the GPU, 0 to
// kMaxClients - 1, and only distinguishes equal shares. Shares fit while memory is free and the
// maximum number is not reached, so such a model is counted() and has no layout table.
//
// Thread-safe. Models are built once and live until the process exits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gpu/catalogue.h"

namespace nos::gpu {

// Limit of CUDA clients of one GPU under MPS: 48 up to CUDA 13.0, 60 since. Each share has at least
// one client. Source: NVIDIA MPS documentation, "Limitations".
inline constexpr int kMaxShares = 48;      // default if the node reports no limit
inline constexpr int kMaxClients = 60;     // larger values are rejected
inline constexpr int kMaxShareGib = 255;   // of one share
inline constexpr int kMaxSharedGib = 960;  // of one GPU; larger values are rejected
// GPU memory used by the MPS server and by the contexts of its clients, in MiB.
inline constexpr int kShareOverheadMib = 512;

// A GPU with `gib` GiB for shares and at most `clients` shares. Values are clamped to
// 1..kMaxSharedGib and 1..kMaxClients.
const Model& SharesOf(int gib, int clients = kMaxShares);
// For the memory that the driver reports: whole GiB, rounded down. Null if it is less than one.
const Model* SharesOfMemory(int64_t mib, int clients = kMaxShares);
// For values that other processes report. A model uses about 100 kB and is never freed, so no model
// is built beyond kMaxShareModels. Null if this limit is reached.
const Model* FindShares(int gib, int clients);
inline constexpr size_t kMaxShareModels = 512;
// By name. Null if the name is invalid or kMaxShareModels is reached.
const Model* FindShares(std::string_view name);

// True if the text is the canonical spelling of a share's resource, such as "nvidia.com/gpu-10gb".
bool IsShareResource(std::string_view resource);

}  // namespace nos::gpu
