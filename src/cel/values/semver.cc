#include "cel/values/semver.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace nos::cel {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsIdentifier(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

// Empty for anything but digits, for a leading zero and beyond 64 bits.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsDigit)) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

// At most `limit` parts; the last has the rest.
std::vector<std::string_view> Split(std::string_view text, size_t limit) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < limit) {
    const size_t dot = text.find('.');
    if (dot == std::string_view::npos) break;
    parts.push_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  parts.push_back(text);
  return parts;
}

int Order(uint64_t a, uint64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

int Order(const Semver::Identifier& a, const Semver::Identifier& b) {
  if (a.text.empty() != b.text.empty()) return a.text.empty() ? -1 : 1;
  if (a.text.empty()) return Order(a.number, b.number);
  const int order = a.text.compare(b.text);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

}  // namespace

const Semver* Semver::Parse(Arena& arena, std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, 3);
  if (parts.size() != 3) return nullptr;
  std::string_view patch_text = parts[2];
  if (const size_t plus = patch_text.find('+'); plus != std::string_view::npos) {
    for (const std::string_view build : Split(patch_text.substr(plus + 1), ~size_t{0})) {
      if (build.empty() || !IsIdentifier(build)) return nullptr;
    }
    patch_text = patch_text.substr(0, plus);
  }
  std::vector<Identifier> identifiers;
  if (const size_t dash = patch_text.find('-'); dash != std::string_view::npos) {
    for (const std::string_view part : Split(patch_text.substr(dash + 1), ~size_t{0})) {
      if (part.empty() || !IsIdentifier(part)) return nullptr;
      const bool number = std::all_of(part.begin(), part.end(), IsDigit);
      const auto value = ParseNumber(part);
      if (number && !value) return nullptr;
      identifiers.push_back(number ? Identifier{{}, *value} : Identifier{arena.Copy(part), 0});
    }
    patch_text = patch_text.substr(0, dash);
  }
  const auto major = ParseNumber(parts[0]);
  const auto minor = ParseNumber(parts[1]);
  const auto patch = ParseNumber(patch_text);
  if (!major || !minor || !patch) return nullptr;
  const std::span<Identifier> stored = arena.NewArray<Identifier>(identifiers.size());
  std::copy(identifiers.begin(), identifiers.end(), stored.begin());
  return arena.New<Semver>(*major, *minor, *patch, stored, arena.Copy(text));
}

const Semver* Semver::ParseTolerant(Arena& arena, std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  std::vector<std::string> parts;
  for (const std::string_view part : Split(text, 3)) {
    if (part.size() < 2) {
      parts.emplace_back(part);
      continue;
    }
    std::string_view trimmed = part;
    trimmed.remove_prefix(std::min(trimmed.find_first_not_of('0'), trimmed.size()));
    const bool zero = trimmed.empty() || !IsDigit(trimmed[0]);
    parts.push_back((zero ? "0" : "") + std::string(trimmed));
  }
  if (parts.size() < 3 && parts.back().find_first_of("+-") != std::string::npos) return nullptr;
  while (parts.size() < 3) parts.emplace_back("0");
  return Parse(arena, parts[0] + "." + parts[1] + "." + parts[2]);
}

int Semver::Compare(const Semver& other) const {
  if (const int order = Order(major, other.major); order != 0) return order;
  if (const int order = Order(minor, other.minor); order != 0) return order;
  if (const int order = Order(patch, other.patch); order != 0) return order;
  if (prerelease.empty() || other.prerelease.empty()) {
    return Order(uint64_t{prerelease.empty()}, uint64_t{other.prerelease.empty()});
  }
  const size_t common = std::min(prerelease.size(), other.prerelease.size());
  for (size_t i = 0; i < common; ++i) {
    if (const int order = Order(prerelease[i], other.prerelease[i]); order != 0) return order;
  }
  return Order(prerelease.size(), other.prerelease.size());
}

}  // namespace nos::cel
