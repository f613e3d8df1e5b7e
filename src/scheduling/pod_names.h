// Names of pods in texts for users. Readers of a pod, its conditions and its Events may lack
// permission to see pods in other namespaces, so such pods are counted instead of named.
//
//   NamesOf({"ml/a", "acme/b", "acme/c"}, "ml") == "ml/a, 2 pods of other namespaces"
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nos::scheduling {

// For a text with PodText in place of names: NamesOnlyFor hides them from each reader.
inline constexpr std::string_view kAllReaders = "*";  // no namespace has this name

// Returns the first three names and the number of further pods. `reader`: namespace of the readers;
// empty: readers may see all namespaces.
std::string NamesOf(const std::vector<std::string>& keys, std::string_view reader,
                    std::string_view separator = ", ");

// Text for a pod, "pod ml/a", in the form that NamesOnlyFor recognises.
std::string PodText(std::string_view key);
// Hides pods of other namespaces than `reader` in a text that contains PodText.
std::string NamesOnlyFor(std::string_view reader, std::string text);

}  // namespace nos::scheduling
