// Shared parts of the fuzz targets.
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

// Aborts the program, which the fuzzer counts as a finding.
inline void Require(bool promise, std::string_view what) {
  if (promise) return;
  std::cerr << "broken promise: " << what << '\n';
  std::abort();
}

// True if the text may contain a number that is not 0 but becomes 0 as a double ("1e-400"): a tree
// has only the double. Such a number has an exponent of three digits.
inline bool HasTinyNumbers(std::string_view text) {
  for (size_t i = 0; i + 4 < text.size(); ++i) {
    if ((text[i] == 'e' || text[i] == 'E') && text[i + 1] == '-' &&
        text.substr(i + 2, 3).find_first_not_of("0123456789") == std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace nos
