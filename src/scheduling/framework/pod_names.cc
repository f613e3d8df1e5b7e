#include "scheduling/pod_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

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

std::string Hidden(size_t pods) {
  return pods == 1 ? "1 pod of another namespace"
                   : fmt::format("{} pods of other namespaces", pods);
}

bool IsOf(std::string_view key, std::string_view ns) { return key.substr(0, key.find('/')) == ns; }

}  // namespace

std::string NamesOf(const std::vector<std::string>& keys, std::string_view reader,
                    std::string_view separator) {
  std::vector<std::string> named;
  size_t others = 0, more = 0;
  for (const std::string& key : keys) {
    if (!reader.empty() && !IsOf(key, reader)) {
      ++others;
    } else if (named.size() < kMaxNamed) {
      named.push_back(key);
    } else {
      ++more;
    }
  }
  if (more > 0) named.push_back(fmt::format("{} more", more));
  if (others > 0) named.push_back(Hidden(others));
  return Join(named, separator);
}

std::string PodText(std::string_view key) { return std::string(kPod).append(key); }

std::string PodsText(const std::vector<std::string>& keys, std::string_view reader,
                     std::string_view separator) {
  std::vector<std::string> named;
  for (const std::string& key : keys) {
    if (named.size() < kMaxNamed) named.push_back(PodText(key));
  }
  if (keys.size() > kMaxNamed) named.push_back(fmt::format("{} more", keys.size() - kMaxNamed));
  std::string text = Join(named, separator);
  return reader.empty() ? text : NamesOnlyFor(reader, std::move(text));
}

std::string NamesOnlyFor(std::string_view reader, std::string text) {
  std::string out;
  size_t copied = 0, hidden = 0, hidden_end = 0;  // of a run of hidden pods
  const auto finish_run = [&] {
    if (hidden == 0) return;
    out += Hidden(std::exchange(hidden, 0));
    copied = hidden_end;
  };
  for (size_t at = text.find(kPod); at != std::string::npos; at = text.find(kPod, at + 1)) {
    const size_t begin = at + kPod.size(), slash = EndOfName(text, begin);
    if (slash == begin || slash == text.size() || text[slash] != '/') continue;
    const size_t end = EndOfName(text, slash + 1);
    if (IsOf(std::string_view(text).substr(begin, slash - begin), reader)) continue;
    const std::string_view between = std::string_view(text).substr(hidden_end, at - hidden_end);
    const bool joins = hidden > 0 && (between == ", " || between == " and ");
    if (!joins) {
      finish_run();
      out.append(text, copied, at - copied);
    }
    ++hidden;
    hidden_end = end;
  }
  finish_run();
  return out.append(text, copied, std::string::npos);
}

}  // namespace nos::scheduling
