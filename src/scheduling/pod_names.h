// Names of pods in texts for users. Readers of a pod, its conditions and its Events may lack
// permission to see pods in other namespaces, so such pods are counted instead of named.
//
//   NamesOf({"ml/a", "acme/b", "acme/c"}, "ml") == "ml/a, 2 pods of other namespaces"
//   PodsText({"acme/b", "acme/c", "ml/a"}, "ml") == "2 pods of other namespaces, pod ml/a"
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nos::scheduling {

// Returns the first three names and the number of further pods. `reader`: namespace of the readers;
// empty: readers may see all namespaces.
std::string NamesOf(const std::vector<std::string>& keys, std::string_view reader,
                    std::string_view separator = ", ");

// Text for a pod, "pod ml/a", in the form that NamesOnlyFor recognises.
std::string PodText(std::string_view key);
// The first three pods, as PodText, and the number of further ones. For a `reader` it equals
// NamesOnlyFor(reader, PodsText(keys, "")).
std::string PodsText(const std::vector<std::string>& keys, std::string_view reader,
                     std::string_view separator = ", ");
// Hides pods of other namespaces than `reader` in a text that contains PodText: neighbours in a
// list become one number.
std::string NamesOnlyFor(std::string_view reader, std::string text);

}  // namespace nos::scheduling
