// Names of MPS shares: the memory that one pod may take of a GPU which several use at a time
// through NVIDIA's Multi-Process Service.
//
// A share's profile is "<N>gb", N GiB. Its device id is "<GPU-UUID>::<N>::<number>", as Nebuly's
// device plugin wrote it, with the share's number on its GPU: what it is can be read from its name
// for as long as a pod holds it, whoever restarts. At most 63 bytes (the kubelet's limit).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nos::device {

struct MpsShare {
  std::string gpu_uuid;  // "GPU-..."
  int gib = 0;           // from 1
  int start = 0;         // its number on its GPU, from 0
  friend auto operator<=>(const MpsShare&, const MpsShare&) = default;
};

// Whatever can be written as one byte: more clients than an MPS server takes.
inline constexpr int kMostMpsStarts = 256;

std::string MpsShareId(const MpsShare& share);
// Nothing when it is no share's id, however close: one share has one spelling.
std::optional<MpsShare> ParseMpsShareId(std::string_view id);

std::string MpsProfile(int gib);
// The GiB of a profile's name, from 1. Nothing for other names, MIG profiles ("1g.10gb") included.
std::optional<int> ParseMpsProfile(std::string_view profile);

}  // namespace nos::device
