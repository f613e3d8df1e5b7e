#include "codec/yaml.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <limits>
#include <string>

#include "base/text.h"

namespace nos {
namespace {

constexpr int kMaxDepth = 100;
// Without aliases a document holds fewer values than bytes.
constexpr size_t kMaxAliasedValues = 1'000'000;

// Thrown and caught inside this file only: yaml-cpp itself reports by exceptions.
struct Refused {
  YAML::Mark mark;
  std::string what;
};

Json FromPlain(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const std::string_view digits = text[0] == '+' ? std::string_view(text).substr(1) : text;
  if (const auto integer = ParseInt(digits)) return *integer;
  const bool numeric = text.find_first_not_of("0123456789+-.eE") == std::string::npos &&
                       text.find_first_of("0123456789") != std::string::npos;
  if (numeric) {
    if (const auto real = ParseDouble(digits)) return *real;
  }
  return boost::json::string(text);
}

class Converter {
 public:
  explicit Converter(size_t budget) : budget_(budget) {}

  Json Convert(const YAML::Node& node, int depth) {
    if (depth > kMaxDepth) throw Refused{node.Mark(), "nested too deeply"};
    if (budget_-- == 0) throw Refused{node.Mark(), "expands to too many values"};
    if (node.IsScalar()) {
      const std::string& text = node.Scalar();
      return node.Tag() == "?" ? FromPlain(text) : Json(boost::json::string(text));
    }
    if (node.IsSequence()) return ConvertSequence(node, depth);
    if (node.IsMap()) return ConvertMap(node, depth);
    return {};
  }

 private:
  Json ConvertSequence(const YAML::Node& node, int depth) {
    JsonArray array;
    for (const YAML::Node& element : node) array.push_back(Convert(element, depth + 1));
    return array;
  }

  Json ConvertMap(const YAML::Node& node, int depth) {
    JsonObject object;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) throw Refused{member.first.Mark(), "a key must be a scalar"};
      object.insert_or_assign(member.first.Scalar(), Convert(member.second, depth + 1));
    }
    return object;
  }

  size_t budget_;
};

Status ErrorAt(size_t document, const YAML::Mark& mark, const std::string& what) {
  return Invalid(fmt::format("YAML document {}, line {}, column {}: {}", document, mark.line + 1,
                             mark.column + 1, what));
}

}  // namespace

Result<std::vector<Json>> ParseYaml(std::string_view text) {
  std::vector<Json> documents;
  size_t number = 1;
  try {
    for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
      if (node.IsDefined() && !node.IsNull()) {
        documents.push_back(Converter(text.size() + kMaxAliasedValues).Convert(node, 0));
      }
      ++number;
    }
  } catch (const Refused& refused) {
    return ErrorAt(number, refused.mark, refused.what);
  } catch (const YAML::Exception& error) {
    return ErrorAt(number, error.mark, error.msg);
  }
  return documents;
}

}  // namespace nos
