// How texts name pods. Who may read a pod, its condition and its Events need not be allowed to know
// of pods in other namespaces: there those are counted.
//
//   NamesOf({"ml/a", "acme/b", "acme/c"}, "ml") == "ml/a, 2 pods of other namespaces"
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nos::scheduling {

// The first three, and how many more there are. `reader`: the namespace of those who read it;
// empty: they may know of all.
std::string NamesOf(const std::vector<std::string>& keys, std::string_view reader,
                    std::string_view separator = ", ");

// The part of a sentence about a pod that NamesOnlyFor finds again: "pod ml/a".
std::string PodText(std::string_view key);
// What others wrote with PodText, for those who read pods of this namespace alone.
std::string NamesOnlyFor(std::string_view reader, std::string text);

}  // namespace nos::scheduling
