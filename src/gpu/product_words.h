// Product names as lower-case words, whatever separates them, so that NVML's "NVIDIA
// A100-SXM4-40GB" and GPU feature discovery's "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED" compare
// equal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nos::gpu {

// Ends before a "MIG" word. Reads at most 256 bytes.
std::vector<std::string> ProductWords(std::string_view product);
// Whether `pattern` occurs in `words` in order (other words may lie between). Never for an empty
// one.
bool ContainsInOrder(const std::vector<std::string>& words,
                     const std::vector<std::string>& pattern);

}  // namespace nos::gpu
