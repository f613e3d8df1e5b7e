#include "codec/yaml.h"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/text.h"
#include "codec/utf8.h"

namespace nos {
namespace {

constexpr size_t kMaxDepth = 100;
// The value's keys are merged into the mapping where it does not have them (yaml.org/type/merge).
constexpr std::string_view kMergeKey = "<<";
// Without aliases a document's size is proportional to its text, so only copies need a limit: so
// many bytes, and kCopiedPerByte more for each byte of text.
constexpr size_t kCopied = size_t{1} << 20;
constexpr size_t kCopiedPerByte = 8;

// Thrown and caught inside this file only, because yaml-cpp itself reports by exceptions.
struct Refused {
  YAML::Mark mark;
  std::string what;
};

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// In decimal, or with the prefix 0x, 0o, 0 or 0b.
std::optional<int64_t> FromDigits(const std::string& text) {
  if (text.find_first_of("+-", 1) != std::string::npos) return std::nullopt;
  const size_t sign = text.find_first_of("+-") == 0 ? 1 : 0;
  const std::string prefix = ToLower(text.substr(sign, 2));
  int base = prefix.size() == 2 && prefix[0] == '0' ? 8 : 10;
  if (prefix == "0x") base = 16;
  if (prefix == "0b") base = 2;
  const size_t skip = sign + (IsOneOf(prefix, {"0x", "0o", "0b"}) ? 2 : 0);
  const std::string digits = (text[0] == '-' ? "-" : "") + text.substr(skip);
  int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value, base);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

// A whole number becomes an integer however it is written: kubectl's JSON does the same.
Json FromReal(double real) {
  constexpr double kMaxWholeNumber = 9e18;  // below where int64 ends
  const bool whole = std::abs(real) < kMaxWholeNumber && std::trunc(real) == real;
  return whole ? Json(static_cast<int64_t>(real)) : Json(real);
}

Json FromNumber(std::string text) {
  std::erase(text, '_');
  if (const auto integer = FromDigits(text)) return *integer;
  if (text.find_first_not_of("0123456789+-.eE") != std::string::npos) return {};
  const auto real = ParseDouble(text[0] == '+' ? text.substr(1) : text);
  return real ? FromReal(*real) : Json();
}

// Numbers follow YAML 1.1, as in sigs.k8s.io/yaml (gopkg.in/yaml.v2, resolve.go).
Json FromPlain(const std::string& text) {
  if (IsOneOf(text, {"", "~", "null", "Null", "NULL"})) return {};
  if (IsOneOf(text, {"true", "True", "TRUE"})) return true;
  if (IsOneOf(text, {"false", "False", "FALSE"})) return false;
  const bool numeric = text.find_first_of("0123456789+-.") == 0 &&
                       text.find_first_of("0123456789") != std::string::npos;
  Json number = numeric ? FromNumber(text) : Json();
  return number.is_null() ? Json(boost::json::string(text)) : number;
}

// A finished value, or one under construction. `bytes` is the memory that a copy of it takes,
// about; `depth` the levels below it.
struct Sized {
  Json value;
  size_t bytes = sizeof(Json);
  size_t depth = 0;
};

Sized SizedOf(Json scalar) {
  const size_t text = scalar.is_string() ? scalar.get_string().size() : 0;
  return {std::move(scalar), sizeof(Json) + text};
}

// Turns the parser's events into JSON, one document after another. (YAML::LoadAll would build a
// graph of nodes first, and does not end when text follows a flow-style document.)
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(size_t budget) : budget_(budget) {}

  // The last document; null when it was empty.
  Json Take() { return std::exchange(root_, nullptr); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_start_) throw Refused{mark, "unexpected text after the document"};
    last_start_ = mark.pos;
    anchors_.clear();
    open_.clear();
    root_ = nullptr;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (ExpectsKey()) throw Refused{mark, "a key must be a scalar"};
    Add(mark, anchor, {});
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (!IsUtf8(text)) throw Refused{mark, Path() + "is not UTF-8 text"};
    if (ExpectsKey()) {
      if (anchor != 0) Remember(mark, anchor, SizedOf(boost::json::string(text)));
      SetKey(mark, text);
      open_.back().merges = tag == "?" && text == kMergeKey;
    } else {
      Add(mark, anchor, SizedOf(tag == "?" ? FromPlain(text) : Json(boost::json::string(text))));
    }
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) throw Refused{mark, "an alias may not refer to what contains it"};
    Spend(mark, it->second.bytes);
    if (ExpectsKey()) {
      if (!it->second.value.is_string()) throw Refused{mark, "a key must be a scalar"};
      SetKey(mark, std::string(View(it->second.value.get_string())));
    } else {
      Add(mark, 0, it->second);
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, anchor, JsonArray());
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, anchor, JsonObject());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Container {
    Sized made;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    std::optional<std::string> key;  // in a map: read, its value not yet
    bool merges = false;             // the value of that key is to be merged
    std::vector<Json> merged;
  };

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().made.value.is_object() && !open_.back().key;
  }

  // The path of the next value: "items[1].metadata.name: ". For a key: the path of its mapping.
  std::string Path() const {
    std::string path;
    for (const Container& container : open_) {
      const Json& made = container.made.value;
      if (made.is_array()) path += fmt::format("[{}]", made.get_array().size());
      if (container.key) path += (path.empty() ? "" : ".") + *container.key;
    }
    return path.empty() ? "" : path + ": ";
  }

  void SetKey(const YAML::Mark& mark, const std::string& key) {
    Container& map = open_.back();
    if (map.made.value.get_object().contains(key) || (key == kMergeKey && !map.merged.empty())) {
      throw Refused{mark, fmt::format("the key '{}' is already in this mapping", key)};
    }
    map.key = key;
    map.made.bytes += key.size();
  }

  void Spend(const YAML::Mark& mark, size_t bytes) {
    if (bytes > budget_) throw Refused{mark, "its aliases expand to too much text"};
    budget_ -= bytes;
  }

  void Remember(const YAML::Mark& mark, YAML::anchor_t anchor, const Sized& made) {
    Spend(mark, made.bytes);
    anchors_[anchor] = made;
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, Json empty) {
    if (ExpectsKey()) throw Refused{mark, "a key must be a scalar"};
    if (open_.size() >= kMaxDepth) throw Refused{mark, "nested too deeply"};
    open_.push_back({{std::move(empty)}, mark, anchor, std::nullopt, false, {}});
  }

  void Close() {
    Container done = std::move(open_.back());
    open_.pop_back();
    for (const Json& from : done.merged) {  // the first mapping that has a key wins
      for (const auto& [key, value] : from.get_object()) {
        done.made.value.get_object().emplace(key, value);
      }
    }
    Add(done.mark, done.anchor, std::move(done.made));
  }

  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, Sized made) {
    if (anchor != 0) Remember(mark, anchor, made);
    if (open_.size() + made.depth > kMaxDepth) throw Refused{mark, "nested too deeply"};
    if (open_.empty()) {
      root_ = std::move(made.value);
      return;
    }
    Container& parent = open_.back();
    parent.made.bytes += made.bytes;
    parent.made.depth = std::max(parent.made.depth, made.depth + 1);
    if (parent.merges) {
      Merge(mark, std::move(made.value), parent);
    } else if (parent.key) {
      parent.made.value.get_object().insert_or_assign(*parent.key, std::move(made.value));
      parent.key.reset();
    } else {
      parent.made.value.get_array().push_back(std::move(made.value));
    }
  }

  // The copied values were counted already as the value of the merge key.
  static void Merge(const YAML::Mark& mark, Json from, Container& map) {
    map.merges = false;
    map.key.reset();
    JsonArray all;
    from.is_array() ? void(all = std::move(from.get_array())) : all.push_back(std::move(from));
    for (Json& one : all) {
      if (!one.is_object()) throw Refused{mark, "only mappings can be merged"};
      map.merged.push_back(std::move(one));
    }
  }

  size_t budget_;  // bytes that aliases and anchors may still copy
  int last_start_ = -1;
  Json root_;
  std::vector<Container> open_;  // from the outermost inwards
  std::map<YAML::anchor_t, Sized> anchors_;
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
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(kCopied + kCopiedPerByte * text.size());
    for (; parser.HandleNextDocument(builder); ++number) {
      Json document = builder.Take();
      if (!document.is_null()) documents.push_back(std::move(document));
    }
  } catch (const Refused& refused) {
    return ErrorAt(number, refused.mark, refused.what);
  } catch (const YAML::Exception& error) {
    return ErrorAt(number, error.mark, error.msg);
  }
  return documents;
}

}  // namespace nos
