#include "dra/testing/table_expressions.h"

#include <regex>

namespace nos::dra {

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
  static const std::regex driver(R"re(device\.driver == "([^"]*)")re");
  static const std::regex attribute(R"re(device\.attributes\["([^"]*)"\]\.(\w+) == "([^"]*)")re");
  std::smatch match;
  if (std::regex_match(expression, match, driver)) return slice.driver.str() == match[1];
  if (!std::regex_match(expression, match, attribute)) return Invalid("unknown expression");
  for (const auto& [name, value] : *device.attributes) {
    const bool named = name.str() == match[1].str() + "/" + match[2].str() ||
                       (slice.driver.str() == match[1] && name.str() == match[2]);
    if (named) return value.text.str() == match[3];
  }
  return Invalid("no such key: " + match[2].str());
}

Result<Attribute> TableExpressions::Derive(const std::string& expression,
                                           const ResourceSlice& slice, const Device& device) const {
  const auto found = derived_.find({expression, slice.name, device.name.str()});
  if (found != derived_.end()) return found->second;
  return Invalid("unknown expression");
}

}  // namespace nos::dra
