// Finds keys that occur twice in one object of a JSON text; a parsed tree keeps only the last.
//
//   FindDuplicateKeys(R"({"metadata":{"labels":{"a":"1","a":"2"}}})", 20);   // metadata.labels.a
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nos {

// Returns the first `most` paths. REQUIRES: ParseJson accepts the text.
std::vector<std::string> FindDuplicateKeys(std::string_view text, size_t most);

}  // namespace nos
