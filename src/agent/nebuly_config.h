// The part of the Nebuly device plugin's configuration that is about MPS shares: for each GPU, the
// number of shares of each size. The plugin numbers them from 0.
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

// (GPU UUID, GiB) -> number of shares, at least one.
using NebulyShares = std::map<std::pair<std::string, int>, int>;

// Equal shares give equal text. GPUs are named by UUID. GPUs with the same number of a size are in
// one entry, because the plugin also offers as a whole any GPU that an entry leaves out.
std::string WriteNebulyConfig(const NebulyShares& shares);

// The shares that the plugin offers if it reads `text`. `gpus`: UUIDs by index, because older texts
// use indices. Error: kInvalid if the plugin rejects the text or would offer anything other than
// such shares.
Result<NebulyShares> ReadNebulyConfig(std::string_view text,
                                      const std::map<int64_t, std::string>& gpus);

// The key in the ConfigMap for this node and text; at most 63 bytes, because a label value holds
// it. `variant` gives further keys for the same text: the plugin reads each key only once.
std::string NebulyKey(std::string_view node, std::string_view text, int variant);
// True for keys of this node: ours, and those of the Go version of nos, "<node>-<Unix seconds>".
// Never true for a key of another node.
bool IsNebulyKeyOf(std::string_view node, std::string_view key);

}  // namespace nos::agent
