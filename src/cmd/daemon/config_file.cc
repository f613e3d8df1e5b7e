#include "cmd/daemon/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "codec/json.h"
#include "codec/millionths.h"
#include "codec/yaml.h"

namespace nos::cmd {
namespace {

class Reader final : public ConfigFields {
 public:
  Reader(const JsonObject& root, std::vector<std::string>& warnings) : warnings_(warnings) {
    Enter("", root);
    (void)Take("apiVersion");
    (void)Take("kind");
  }

  void Group(std::string_view key, FunctionRef<void()> fields) override {
    static const JsonObject nothing;
    const Json* group = Take(key);
    if (group != nullptr && !group->is_object()) Wrong(key, "a mapping");
    const bool there = group != nullptr && group->is_object();
    Enter(PathOf(key), there ? group->get_object() : nothing);
    fields();
    Leave();
  }
  void Text(std::string_view key, std::string& value, std::string_view) override {
    const Json* given = Take(key);
    if (given == nullptr) return;
    if (!given->is_string()) return Wrong(key, "a string");
    value = View(given->get_string());
  }
  void Word(std::string_view key, std::string& value, const std::vector<std::string>& words,
            std::string_view) override {
    const Json* given = Take(key);
    if (given == nullptr) return;
    std::string word = given->is_string() ? std::string(View(given->get_string())) : "";
    if (std::ranges::find(words, word) == words.end()) {
      return Wrong(key, "one of " + Join(words, ", "));
    }
    value = std::move(word);
  }
  void Flag(std::string_view key, bool& value, std::string_view) override {
    const Json* given = Take(key);
    if (given == nullptr) return;
    if (!given->is_bool()) return Wrong(key, "true or false");
    value = given->get_bool();
  }
  void Number(std::string_view key, int64_t& value, int64_t least, int64_t most,
              std::string_view) override {
    const Json* given = Take(key);
    if (given == nullptr) return;
    if (!given->is_int64() || given->get_int64() < least || given->get_int64() > most) {
      return Wrong(key, fmt::format("an integer from {} to {}", least, most));
    }
    value = given->get_int64();
  }
  void Seconds(std::string_view key, Duration& value, Duration least, Duration most,
               std::string_view) override {
    const Json* given = Take(key);
    if (given == nullptr) return;
    const auto seconds = DurationOf(*given);
    if (!seconds.ok() || *seconds < least || *seconds > most) {
      return Wrong(
          key, fmt::format("a number of seconds from {} to {}", ToSeconds(least), ToSeconds(most)));
    }
    value = *seconds;
  }
  void Decimal(std::string_view key, int64_t& value, int64_t least, int64_t most,
               std::string_view) override {
    const Json* given = Take(key);
    if (given == nullptr) return;
    const auto millionths = MillionthsOf(*given);
    if (!millionths || *millionths < least || *millionths > most) {
      return Wrong(key,
                   fmt::format("a number from {} to {} with at most six digits after the point",
                               MillionthsText(least), MillionthsText(most)));
    }
    value = *millionths;
  }
  void Texts(std::string_view key, std::map<std::string, std::string>& value,
             std::string_view) override {
    const Json* given = Take(key);
    if (given == nullptr) return;
    const bool texts =
        given->is_object() && std::ranges::all_of(given->get_object(), [](const auto& member) {
          return member.value().is_string();
        });
    if (!texts) return Wrong(key, "a mapping of strings");
    value.clear();
    for (const auto& member : given->get_object()) {
      value.emplace(std::string(member.key().data(), member.key().size()),
                    View(member.value().get_string()));
    }
  }
  void List(std::string_view key, size_t, FunctionRef<void(size_t)> resize,
            FunctionRef<void(size_t)> item, std::string_view) override {
    const Json* given = Take(key);
    if (given == nullptr) return;
    const bool mappings =
        given->is_array() &&
        std::ranges::all_of(given->get_array(), [](const Json& each) { return each.is_object(); });
    if (!mappings) return Wrong(key, "a list of mappings");
    const JsonArray& items = given->get_array();
    resize(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      Enter(fmt::format("{}[{}]", PathOf(key), i), items[i].get_object());
      item(i);
      Leave();
    }
  }
  void Renamed(std::string_view old_key, std::string_view key) override {
    const Json* old = Take(old_key);
    if (old == nullptr) return;
    if (Take(key) != nullptr) {
      problems_.push_back(
          fmt::format("{}: renamed to {}, which is also set", PathOf(old_key), PathOf(key)));
      return;
    }
    warnings_.push_back(fmt::format("{} is deprecated: use {}", PathOf(old_key), PathOf(key)));
    levels_.back().renamed.emplace(key, old);
  }
  void Retired(std::string_view key, std::string_view why) override {
    if (Take(key) == nullptr) return;
    warnings_.push_back(fmt::format("{} has no effect: {}", PathOf(key), why));
  }

  std::vector<std::string> Finish() {
    Leave();
    return std::move(problems_);
  }

 private:
  struct Level {
    std::string path;
    const JsonObject* object;
    std::set<std::string, std::less<>> known;
    std::map<std::string, const Json*, std::less<>> renamed;  // by current key
  };

  static Result<Duration> DurationOf(const Json& value) {
    if (value.is_string()) return ParseDuration(View(value.get_string()));
    const double seconds = value.is_int64()    ? static_cast<double>(value.get_int64())
                           : value.is_double() ? value.get_double()
                                               : -1;
    // A value that does not fit into a Duration is outside all limits anyway.
    if (!(seconds >= 0 && seconds < 1e9)) return Invalid("no duration");
    return FromSeconds(seconds);
  }
  static std::optional<int64_t> MillionthsOf(const Json& value) {
    if (value.is_string()) return ParseMillionths(View(value.get_string()));
    if (value.is_int64()) return ParseMillionths(fmt::to_string(value.get_int64()));
    // The shortest text of a double is the one in the file, unless that has 16 digits or more.
    return value.is_double() ? ParseMillionths(fmt::format("{}", value.get_double()))
                             : std::nullopt;
  }
  std::string PathOf(std::string_view key) const {
    const std::string& path = levels_.back().path;
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }
  void Enter(std::string path, const JsonObject& object) {
    levels_.push_back({std::move(path), &object, {}, {}});
  }
  void Leave() {
    for (const auto& member : *levels_.back().object) {
      const std::string_view key(member.key().data(), member.key().size());
      if (!levels_.back().known.contains(key)) {
        problems_.push_back(fmt::format("{}: unknown field", PathOf(key)));
      }
    }
    levels_.pop_back();
  }
  // Null if the key is missing or null: templates leave nulls for values that are not set.
  const Json* Take(std::string_view key) {
    levels_.back().known.emplace(key);
    if (const auto old = levels_.back().renamed.find(key); old != levels_.back().renamed.end()) {
      return old->second;
    }
    const auto* value = levels_.back().object->if_contains(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  void Wrong(std::string_view key, std::string_view wanted) {
    problems_.push_back(fmt::format("{}: expected {}", PathOf(key), wanted));
  }

  std::vector<Level> levels_;
  std::vector<std::string> problems_;
  std::vector<std::string>& warnings_;
};

class Printer final : public ConfigFields {
 public:
  explicit Printer(std::string_view kind)
      : out_(fmt::format("apiVersion: {}\nkind: {}\n", kConfigVersion, kind)) {}

  void Group(std::string_view key, FunctionRef<void()> fields) override {
    const size_t start = out_.size();
    out_ += fmt::format("{}{}:\n", indent_, key);
    const size_t empty = out_.size();
    indent_ += "  ";
    fields();
    indent_.resize(indent_.size() - 2);
    if (out_.size() == empty) out_.resize(start);  // it has retired keys only
  }
  void Text(std::string_view key, std::string& value, std::string_view help) override {
    Line(key, WriteJson(Json(value)), help);  // a quoted JSON string is valid YAML
  }
  void Word(std::string_view key, std::string& value, const std::vector<std::string>& words,
            std::string_view help) override {
    Line(key, value, fmt::format("{} One of {}.", help, Join(words, ", ")));
  }
  void Flag(std::string_view key, bool& value, std::string_view help) override {
    Line(key, value ? "true" : "false", help);
  }
  void Number(std::string_view key, int64_t& value, int64_t, int64_t,
              std::string_view help) override {
    Line(key, fmt::to_string(value), help);
  }
  void Seconds(std::string_view key, Duration& value, Duration, Duration,
               std::string_view help) override {
    Line(key, fmt::format("{}", ToSeconds(value)), help);
  }
  void Decimal(std::string_view key, int64_t& value, int64_t, int64_t,
               std::string_view help) override {
    Line(key, value < 0 ? "null" : MillionthsText(value), help);
  }
  void Texts(std::string_view key, std::map<std::string, std::string>& value,
             std::string_view help) override {
    JsonObject texts;
    for (const auto& [name, text] : value) texts[name] = text;
    Line(key, WriteJson(texts), help);
  }
  void List(std::string_view key, size_t size, FunctionRef<void(size_t)>,
            FunctionRef<void(size_t)> item, std::string_view help) override {
    Line(key, size == 0 ? "[]" : "", help);
    for (size_t i = 0; i < size; ++i) {
      out_ += fmt::format("{}  -\n", indent_);
      indent_ += "    ";
      item(i);
      indent_.resize(indent_.size() - 4);
    }
  }
  void Renamed(std::string_view, std::string_view) override {}
  void Retired(std::string_view, std::string_view) override {}

  std::string Finish() && { return std::move(out_); }

 private:
  void Line(std::string_view key, std::string_view value, std::string_view help) {
    std::string line;
    for (const std::string_view word : Split(help, ' ')) {
      if (indent_.size() + line.size() + word.size() > 96) {
        out_ += fmt::format("{}#{}\n", indent_, line);
        line.clear();
      }
      line += fmt::format(" {}", word);
    }
    out_ += fmt::format("{}#{}\n{}{}:{}{}\n", indent_, line, indent_, key, value.empty() ? "" : " ",
                        value);
  }

  std::string out_, indent_;
};

Status CheckHead(const Json& root, std::string_view kind) {
  if (!root.is_object()) return Invalid("expected a mapping");
  const std::string_view version = FindString(root, "apiVersion"), given = FindString(root, "kind");
  if (version == kConfigVersion && given == kind) return Status::Ok();
  return Invalid(fmt::format("expected apiVersion {} and kind {}, found '{}' and '{}'",
                             kConfigVersion, kind, version, given));
}

}  // namespace

Status ReadConfig(const Json& document, std::string_view kind, DescribeConfig fields,
                  std::vector<std::string>& warnings) {
  NOS_RETURN_IF_ERROR(CheckHead(document, kind));
  Reader reader(document.get_object(), warnings);
  fields(reader);
  const std::vector<std::string> problems = reader.Finish();
  return problems.empty() ? Status::Ok() : Invalid(Join(problems, "; "));
}

Status ReadConfig(std::string_view text, std::string_view kind, DescribeConfig fields,
                  std::vector<std::string>& warnings) {
  NOS_ASSIGN(const std::vector<Json> documents, ParseYaml(text));
  if (documents.empty()) return Status::Ok();
  if (documents.size() > 1) return Invalid("expected one document");
  return ReadConfig(documents.front(), kind, fields, warnings);
}

std::string PrintConfig(std::string_view kind, DescribeConfig fields) {
  Printer printer(kind);
  fields(printer);
  return std::move(printer).Finish();
}

}  // namespace nos::cmd
