#include "scheduling/framework/config_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

namespace nos::scheduling {
namespace {

// Bounds the report of a configuration with many errors.
constexpr size_t kMaxProblems = 50;

std::string_view KindOf(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "a boolean";
    case boost::json::kind::string:
      return "a string";
    case boost::json::kind::array:
      return "a list";
    case boost::json::kind::object:
      return "an object";
    default:
      return "a number";
  }
}

}  // namespace

std::string ConfigValue::PathOf(std::string_view member) const {
  return path_.empty() ? std::string(member) : fmt::format("{}.{}", path_, member);
}

std::string ConfigValue::PathOf(size_t element) const {
  return fmt::format("{}[{}]", path_, element);
}

void ConfigValue::FailAt(const std::string& path, std::string_view what) const {
  std::string problem = path.empty() ? std::string(what) : fmt::format("{}: {}", path, what);
  if (problems_.size() >= kMaxProblems || std::ranges::count(problems_, problem) > 0) return;
  problems_.push_back(std::move(problem));
}

bool ConfigValue::Expect(bool fulfilled, std::string_view expected) const {
  if (!fulfilled) Fail(fmt::format("must be {}, not {}", expected, KindOf(*value_)));
  return fulfilled;
}

void ConfigValue::Read(bool& out) const {
  static const std::map<std::string_view, bool> kWords = {
      {"y", true},   {"Y", true},    {"yes", true},  {"Yes", true}, {"YES", true}, {"on", true},
      {"On", true},  {"ON", true},   {"n", false},   {"N", false},  {"no", false}, {"No", false},
      {"NO", false}, {"off", false}, {"Off", false}, {"OFF", false}};
  if (Present() && value_->is_string()) {
    const auto word = kWords.find(View(value_->get_string()));
    if (word != kWords.end()) return (void)(out = word->second);
  }
  if (Present() && Expect(value_->is_bool(), "true or false")) out = value_->get_bool();
}

template <typename Integer>
void ConfigValue::ReadInteger(Integer& out) const {
  if (!Present()) return;
  if (!value_->is_int64()) {
    const bool number = value_->is_number();
    return number ? Fail("must be a whole number") : (void)Expect(false, "a whole number");
  }
  const int64_t number = value_->get_int64();
  if (number < std::numeric_limits<Integer>::min() ||
      number > std::numeric_limits<Integer>::max()) {
    return Fail(fmt::format("{} is too large a number", number));
  }
  out = static_cast<Integer>(number);
}

void ConfigValue::Read(int32_t& out) const { ReadInteger(out); }
void ConfigValue::Read(int64_t& out) const { ReadInteger(out); }

void ConfigValue::Read(double& out) const {
  if (Present() && Expect(value_->is_number(), "a number")) out = value_->to_number<double>();
}

void ConfigValue::Read(std::string& out) const {
  if (Present() && Expect(value_->is_string(), "a string")) out = View(value_->get_string());
}

void ConfigValue::Read(Duration& out) const {
  if (!Present() || !Expect(value_->is_string(), "a duration such as \"15s\"")) return;
  const auto duration = ParseDuration(View(value_->get_string()));
  if (duration.ok()) {
    out = *duration;
  } else {
    Fail(duration.status().message());
  }
}

void ConfigValue::Read(std::vector<std::string>& out) const {
  if (!Present()) return;
  out.clear();
  Elements([&](const ConfigValue& element) { element.Read(out.emplace_back()); });
}

void ConfigValue::Elements(FunctionRef<void(const ConfigValue& element)> visit) const {
  if (!Present() || !Expect(value_->is_array(), "a list")) return;
  const JsonArray& list = value_->get_array();
  for (size_t i = 0; i < list.size(); ++i) {
    const ConfigValue element(&list[i], PathOf(i), problems_);
    if (element.Present()) {
      visit(element);
    } else {
      element.Fail("must not be null");
    }
  }
}

void ConfigValue::ForEach(
    FunctionRef<void(std::string_view key, const ConfigValue& value)> visit) const {
  if (!Present() || !Expect(value_->is_object(), "an object")) return;
  for (const auto& member : value_->get_object()) {
    const std::string_view key(member.key().data(), member.key().size());
    visit(key, ConfigValue(&member.value(), PathOf(key), problems_));
  }
}

ConfigValue ConfigValue::Get(std::string_view key) const {
  return {value_ == nullptr ? nullptr : Find(*value_, key), PathOf(key), problems_};
}

}  // namespace nos::scheduling
