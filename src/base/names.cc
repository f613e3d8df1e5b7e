#include "base/names.h"

#include <algorithm>

#include "base/text.h"

namespace nos {
namespace {

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsLetterOrDigit(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }

bool IsNameText(std::string_view text) {
  if (text.empty() || !IsLetterOrDigit(text.front()) || !IsLetterOrDigit(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

bool IsDnsLabel(std::string_view text) {
  if (text.empty() || text.size() > 63) return false;
  if (!IsLowerOrDigit(text.front()) || !IsLowerOrDigit(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  for (const std::string_view part : Split(text, '.')) {
    if (part.empty() || !IsLowerOrDigit(part.front()) || !IsLowerOrDigit(part.back())) return false;
    const bool good =
        std::all_of(part.begin(), part.end(), [](char c) { return IsLowerOrDigit(c) || c == '-'; });
    if (!good) return false;
  }
  return true;
}

bool IsQualifiedName(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    if (!IsDnsSubdomain(text.substr(0, slash))) return false;
    text = text.substr(slash + 1);
  }
  return text.size() <= 63 && IsNameText(text);
}

bool IsLabelValue(std::string_view text) {
  return text.empty() || (text.size() <= 63 && IsNameText(text));
}

}  // namespace nos
