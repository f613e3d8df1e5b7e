// Arguments and environments for exec and posix_spawn.
#pragma once

#include <string>
#include <vector>

namespace nos {

// The array ends with a null pointer. It stays valid while `texts` lives unchanged.
inline std::vector<char*> ArgvOf(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace nos
