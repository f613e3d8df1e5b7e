#include "scheduling/pod_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace nos::scheduling {
namespace {

constexpr size_t kMaxNamed = 3;
constexpr std::string_view kPod = "pod ";
// Characters of namespace and pod names (RFC 1123).
constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.";

size_t EndOfName(std::string_view text, size_t from) {
  return std::min(text.find_first_not_of(kNameCharacters, from), text.size());
}

bool IsOf(std::string_view key, std::string_view ns) { return key.substr(0, key.find('/')) == ns; }

}  // namespace

std::string NamesOf(const std::vector<std::string>& keys, std::string_view reader,
                    std::string_view separator) {
  std::vector<std::string> named;
  size_t others = 0, more = 0;
  for (const std::string& key : keys) {
    if (!reader.empty() && reader != kAllReaders && !IsOf(key, reader)) {
      ++others;
    } else if (named.size() < kMaxNamed) {
      named.push_back(reader == kAllReaders ? PodText(key) : key);
    } else {
      ++more;
    }
  }
  if (more > 0) named.push_back(fmt::format("{} more", more));
  if (others == 1) named.emplace_back("1 pod of another namespace");
  if (others > 1) named.push_back(fmt::format("{} pods of other namespaces", others));
  return Join(named, separator);
}

std::string PodText(std::string_view key) { return std::string(kPod).append(key); }

std::string NamesOnlyFor(std::string_view reader, std::string text) {
  for (size_t at = text.find(kPod); at != std::string::npos; at = text.find(kPod, at + 1)) {
    const size_t begin = at + kPod.size(), slash = EndOfName(text, begin);
    if (slash == begin || slash == text.size() || text[slash] != '/') continue;
    const size_t end = EndOfName(text, slash + 1);
    if (IsOf(std::string_view(text).substr(begin, slash - begin), reader)) continue;
    text.replace(at, end - at, "a pod of another namespace");
  }
  return text;
}

}  // namespace nos::scheduling
