#include "sim/apiserver/schemas/custom_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/apiserver/schemas/patterns.h"
#include "sim/apiserver/schemas/unknown.h"

namespace nos::sim {
namespace {

// True for formats that restrict no value: they describe only the width of a number or the display
// of a text.
bool IsNoRule(std::string_view format) {
  constexpr std::string_view kNoRules[] = {"", "int32", "int64", "float", "double", "password"};
  return std::find(std::begin(kNoRules), std::end(kNoRules), format) != std::end(kNoRules);
}

// `patterns`: number of patterns so far.
std::vector<std::string> UnappliedOf(const Json& schema, size_t& patterns) {
  std::vector<std::string> rules;
  const Json* int_or_string = Find(schema, "x-kubernetes-int-or-string");
  // the anyOf that x-kubernetes-int-or-string implies
  const bool implied = int_or_string != nullptr && *int_or_string == true;
  for (const std::string_view rule :
       {"allOf", "anyOf", "oneOf", "not", "x-kubernetes-validations"}) {
    const bool known = implied && (rule == "anyOf" || rule == "allOf");
    if (!known && Find(schema, rule) != nullptr) rules.emplace_back(rule);
  }
  if (!IsNoRule(FindString(schema, "format"))) rules.emplace_back("format");
  const std::string_view pattern = FindString(schema, "pattern");
  const bool beyond = !pattern.empty() && ++patterns > kMaxPatterns;
  if (beyond || !FaultOf(pattern).why.empty()) rules.emplace_back("pattern");
  return rules;
}

}  // namespace

void VisitSchemas(const Json& schema, const std::string& path, SchemaVisitor visit) {
  if (!schema.is_object()) return;
  visit(schema, path);
  if (const Json* properties = Find(schema, "properties"); properties && properties->is_object()) {
    for (const auto& [name, property] : properties->get_object()) {
      VisitSchemas(property, Truncated(fmt::format("{}.properties.{}", path, View(name))), visit);
    }
  }
  for (const std::string_view inside : {"items", "additionalProperties"}) {
    if (const Json* part = Find(schema, inside)) {
      VisitSchemas(*part, Truncated(fmt::format("{}.{}", path, inside)), visit);
    }
  }
}

void ValidatePatterns(const Json& schema, const std::string& field, Causes& causes) {
  VisitSchemas(schema, field, [&](const Json& part, const std::string& path) {
    const std::string_view pattern = FindString(part, "pattern");
    const PatternFault fault = FaultOf(pattern);
    if (!fault.malformed) return;
    causes.Invalid(path + ".pattern", pattern,
                   "must be a valid regular expression, but isn't: " + fault.why);
  });
}

std::vector<std::string> UnappliedRules(const Json& definition) {
  std::vector<std::string> unapplied;
  const Json* versions = Find(definition, "spec", "versions");
  if (versions == nullptr || !versions->is_array()) return unapplied;
  for (size_t i = 0; i < versions->get_array().size(); ++i) {
    const Json* schema = Find(versions->get_array()[i], "schema", "openAPIV3Schema");
    if (schema == nullptr) continue;
    const std::string field = fmt::format("spec.versions[{}].schema.openAPIV3Schema", i);
    size_t patterns = 0;
    VisitSchemas(*schema, field, [&](const Json& part, const std::string& path) {
      const std::vector<std::string> rules = UnappliedOf(part, patterns);
      if (rules.empty() || unapplied.size() >= kMaxUnknownReported) return;
      unapplied.push_back(
          fmt::format("{}: not applied by this simulated API server: {}", path, Join(rules, ", ")));
    });
  }
  return unapplied;
}

}  // namespace nos::sim
