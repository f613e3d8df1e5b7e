// Splits product names into lower-case words, whatever the separator, so that NVML's "NVIDIA
// A100-SXM4-40GB" equals GPU feature discovery's "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nos::gpu {

// Stops before the word "MIG". Reads at most 256 bytes.
std::vector<std::string> ProductWords(std::string_view product);
// True if the words of `pattern` occur in `words` in the same order; other words may lie between.
// False for an empty pattern.
bool ContainsInOrder(const std::vector<std::string>& words,
                     const std::vector<std::string>& pattern);

}  // namespace nos::gpu
