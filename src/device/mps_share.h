// Names of MPS shares. A share is the GPU memory that one pod may use on a GPU shared through
// NVIDIA's Multi-Process Service.
//
// A share's profile is "<N>gb", N GiB. Its device id is "<GPU-UUID>::<N>::<number>", the format of
// Nebuly's device plugin, with the share's number on its GPU. The id alone describes the share, so
// it survives restarts of every component while a pod holds it. At most 63 bytes (the kubelet's
// limit).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nos::device {

struct MpsShare {
  std::string gpu_uuid;  // "GPU-..."
  int gib = 0;           // from 1
  int start = 0;         // number on its GPU, from 0
  friend auto operator<=>(const MpsShare&, const MpsShare&) = default;
};

// Every number that fits a byte: more than an MPS server has clients.
inline constexpr int kMaxMpsStarts = 256;

std::string MpsShareId(const MpsShare& share);
// Empty if it is not a share's id; only one spelling is accepted.
std::optional<MpsShare> ParseMpsShareId(std::string_view id);

// True for the UUID of a GPU or MIG instance in a spelling that is safe as the name of a folder.
bool IsMpsUuid(const std::string& uuid);

std::string MpsProfile(int gib);
// The GiB of a profile's name, from 1. Empty for other names, MIG profiles ("1g.10gb") included.
std::optional<int> ParseMpsProfile(std::string_view profile);

}  // namespace nos::device
