// Keys that stand twice in one object of a JSON text, which a parsed tree no longer shows.
//
//   FindDuplicateKeys(R"({"metadata":{"labels":{"a":"1","a":"2"}}})", 20);   // metadata.labels.a
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nos {

// The paths of the first `most`. REQUIRES: ParseJson takes the text.
std::vector<std::string> FindDuplicateKeys(std::string_view text, size_t most);

}  // namespace nos
