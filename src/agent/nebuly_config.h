// The configuration of Nebuly's device plugin, as far as it is about MPS shares: of each GPU so
// many of each size. The plugin numbers them from 0.
//
//   version: v1
//   flags: {migStrategy: none}
//   sharing:
//     mps:
//       failRequestsGreaterThanOne: true
//       resources:
//         - {name: nvidia.com/gpu, rename: gpu-10gb, memoryGB: 10, replicas: 3, devices: [GPU-...]}
//
// Source: nebuly-ai/k8s-device-plugin, api/config/v1/replicas.go (version 0.13.0).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace nos::agent {

// (GPU's UUID, GiB) -> how many, at least one.
using NebulyShares = std::map<std::pair<std::string, int>, int>;

// The same text for the same shares. GPUs are named by UUID, and those that have as many of a size
// in one entry: a GPU that an entry leaves out the plugin offers as a whole, too.
std::string WriteNebulyConfig(const NebulyShares& shares);

// What the plugin offers if it reads this. `gpus`: UUIDs by index, which older texts name. Error:
// kInvalid: it would not read it, or would make of it something else than such shares.
Result<NebulyShares> ReadNebulyConfig(std::string_view text,
                                      const std::map<int64_t, std::string>& gpus);

// Of the ConfigMap, for this node and text; at most 63 bytes, since a label's value names it.
// Another `variant`, another key: the plugin reads a key once.
std::string NebulyKey(std::string_view node, std::string_view text, int variant);
// Whether it is a key of this node: of ours, or as the Go project wrote them,
// "<node>-<Unix seconds>". Never of any other node's.
bool IsNebulyKeyOf(std::string_view node, std::string_view key);

}  // namespace nos::agent
