// What every fuzz target needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace nos {

inline std::string_view FuzzText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the program, which the fuzzer counts as a finding.
inline void Require(bool promise, std::string_view what) {
  if (promise) return;
  std::cerr << "broken promise: " << what << '\n';
  std::abort();
}

}  // namespace nos
