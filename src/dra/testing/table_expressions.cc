#include "dra/testing/table_expressions.h"

#include <optional>
#include <string_view>

namespace nos::dra {
namespace {

// Removes `opening`, a text and `closing` from the front: the text. Nullopt if they are not there.
std::optional<std::string_view> Take(std::string_view& rest, std::string_view opening,
                                     std::string_view closing) {
  if (!rest.starts_with(opening)) return std::nullopt;
  const size_t end = rest.find(closing, opening.size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = rest.substr(opening.size(), end - opening.size());
  rest.remove_prefix(end + closing.size());
  return text;
}

}  // namespace

void TableExpressions::Add(const std::string& expression, const std::string& slice,
                           const std::string& device, Result<bool> answer) {
  answers_.insert_or_assign({expression, slice, device}, std::move(answer));
}

void TableExpressions::AddDerived(const std::string& expression, const std::string& slice,
                                  const std::string& device, Result<Attribute> answer) {
  derived_.insert_or_assign({expression, slice, device}, std::move(answer));
}

Result<bool> TableExpressions::Matches(const std::string& expression, const ResourceSlice& slice,
                                       const Device& device) const {
  ++evaluated_;
  const auto found = answers_.find({expression, slice.name, device.name.str()});
  if (found != answers_.end()) return found->second;
  if (expression == "true" || expression == "false") return expression == "true";
  std::string_view rest = expression;
  if (const auto driver = Take(rest, "device.driver == \"", "\"")) {
    return slice.driver.str() == *driver;
  }
  const auto domain = Take(rest, "device.attributes[\"", "\"].");
  const auto id = Take(rest, "", " == \"");
  const auto wanted = Take(rest, "", "\"");
  if (!domain || !id || !wanted) return Invalid("unknown expression");
  const std::string full = std::string(*domain) + "/" + std::string(*id);
  for (const auto& [name, value] : *device.attributes) {
    const bool named = name.str() == full || (slice.driver.str() == *domain && name.str() == *id);
    if (named) return value.text.str() == *wanted;
  }
  return Invalid("no such key: " + std::string(*id));
}

Result<Attribute> TableExpressions::Derive(const std::string& expression,
                                           const ResourceSlice& slice, const Device& device) const {
  const auto found = derived_.find({expression, slice.name, device.name.str()});
  if (found != derived_.end()) return found->second;
  return Invalid("unknown expression");
}

}  // namespace nos::dra
