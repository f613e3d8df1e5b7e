#include "sim/apiserver/patching/patch_json.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "sim/apiserver/objects/tree.h"

namespace nos::sim {
namespace {

constexpr size_t kMaxOperations = 10'000;  // limit of the real server
// Limit on the bytes that all copies and moves of one patch transfer together: otherwise a few
// lines could double a tree many times.
constexpr size_t kMaxCarriedBytes = 4 * kMaxObjectBytes;

using Pointer = std::vector<std::string>;

Refusal DoesNotApply(const std::string& message) {
  return MakeRefusal(422, "Invalid",
                     "the server rejected our request due to an error in our request: " + message);
}

// Parses a JSON Pointer (RFC 6901).
Outcome<Pointer> ParsePointer(std::string_view text) {
  Pointer pointer;
  if (text.empty()) return pointer;
  if (text[0] != '/') return BadRequest(fmt::format("JSON patch: bad path \"{}\"", text));
  for (const std::string_view part : Split(text.substr(1), '/')) {
    std::string step;
    for (size_t i = 0; i < part.size(); ++i) {
      const bool escape = part[i] == '~' && i + 1 < part.size();
      if (escape && part[i + 1] != '0' && part[i + 1] != '1') {
        return BadRequest(fmt::format("JSON patch: bad path \"{}\"", text));
      }
      step += escape ? (part[++i] == '0' ? '~' : '/') : part[i];
    }
    pointer.push_back(std::move(step));
  }
  if (pointer.size() > kMaxDepth) return BadRequest("JSON patch: a path is too long");
  return pointer;
}

// The index of an existing element, or of the end if `may_append`.
std::optional<size_t> ParseIndex(const JsonArray& array, const std::string& step, bool may_append) {
  if (step == "-" && may_append) return array.size();
  const auto index = ParseInt(step);
  if (!index || *index < 0 || (step.size() > 1 && step[0] == '0')) return std::nullopt;
  const size_t limit = array.size() + (may_append ? 1 : 0);
  if (static_cast<size_t>(*index) >= limit) return std::nullopt;
  return static_cast<size_t>(*index);
}

Json* Step(Json& value, const std::string& step) {
  if (value.is_object()) return value.get_object().if_contains(step);
  if (!value.is_array()) return nullptr;
  const auto index = ParseIndex(value.get_array(), step, false);
  return index ? &value.get_array()[*index] : nullptr;
}

Json* Resolve(Json& root, const Pointer& pointer, size_t steps) {
  Json* value = &root;
  for (size_t i = 0; i < steps && value != nullptr; ++i) value = Step(*value, pointer[i]);
  return value;
}

bool Add(Json& root, const Pointer& at, Json value) {
  if (at.empty()) {
    root = std::move(value);
    return true;
  }
  Json* parent = Resolve(root, at, at.size() - 1);
  if (parent == nullptr) return false;
  if (parent->is_object()) {
    parent->get_object()[at.back()] = std::move(value);
    return true;
  }
  if (!parent->is_array()) return false;
  JsonArray& array = parent->get_array();
  const auto index = ParseIndex(array, at.back(), true);
  if (index) array.insert(array.begin() + *index, std::move(value));
  return index.has_value();
}

std::optional<Json> Take(Json& root, const Pointer& at) {
  Json* value = at.empty() ? nullptr : Resolve(root, at, at.size());
  if (value == nullptr) return std::nullopt;
  Json taken = std::move(*value);
  Json* parent = Resolve(root, at, at.size() - 1);
  if (parent->is_object()) {
    parent->get_object().erase(at.back());
  } else {
    JsonArray& array = parent->get_array();
    const auto index = ParseIndex(array, at.back(), false);
    if (index) array.erase(array.begin() + *index);
  }
  return taken;
}

struct Operation {
  std::string_view name;
  Pointer path, from;
  const Json* value = nullptr;
};

Outcome<Operation> ParseOperation(const Json& json) {
  Operation operation;
  operation.name = FindString(json, "op");
  const Json* path = Find(json, "path");
  if (path == nullptr || !path->is_string()) return BadRequest("JSON patch: no path");
  NOS_ASSIGN(operation.path, ParsePointer(View(path->get_string())));
  NOS_ASSIGN(operation.from, ParsePointer(FindString(json, "from")));
  operation.value = Find(json, "value");
  const std::string_view name = operation.name;
  const bool with_value = name == "add" || name == "replace" || name == "test";
  if (with_value && operation.value == nullptr) {
    return BadRequest(fmt::format("JSON patch: {} without a value", name));
  }
  if ((name == "move" || name == "copy") && Find(json, "from") == nullptr) {
    return BadRequest(fmt::format("JSON patch: {} without from", name));
  }
  if (!with_value && name != "remove" && name != "move" && name != "copy") {
    return BadRequest(fmt::format("JSON patch: unknown operation \"{}\"", name));
  }
  return operation;
}

bool Perform(Json& target, const Operation& operation) {
  const std::string_view name = operation.name;
  if (name == "add") return Add(target, operation.path, *operation.value);
  if (name == "remove") return Take(target, operation.path).has_value();
  Json* at = Resolve(target, operation.path, operation.path.size());
  if (name == "test") {
    return at == nullptr ? operation.value->is_null() : *at == *operation.value;
  }
  if (name == "replace") {
    if (at != nullptr) *at = *operation.value;
    return at != nullptr;
  }
  const Json* from = Resolve(target, operation.from, operation.from.size());
  if (from == nullptr) return false;
  if (name == "copy") return Add(target, operation.path, Json(*from));
  const bool into_itself =
      operation.from.size() < operation.path.size() &&
      std::equal(operation.from.begin(), operation.from.end(), operation.path.begin());
  if (into_itself) return false;
  auto taken = Take(target, operation.from);
  return taken && Add(target, operation.path, std::move(*taken));
}

// Charges the bytes that a copy or move will transfer.
Check Charge(Json& target, const Operation& operation, size_t& carried) {
  if (operation.name != "copy" && operation.name != "move") return std::nullopt;
  const Json* from = Resolve(target, operation.from, operation.from.size());
  if (from == nullptr) return std::nullopt;
  carried += BytesOf(*from);
  if (carried > kMaxCarriedBytes || operation.path.size() + DepthOf(*from) > kMaxDepth) {
    return BadRequest("JSON patch: copies and moves make the object too large or too deep");
  }
  return std::nullopt;
}

}  // namespace

Check JsonPatch(Json& target, const Json& patch) {
  if (!patch.is_array()) return BadRequest("a JSON patch is an array of operations");
  if (patch.get_array().size() > kMaxOperations) {
    return BadRequest(fmt::format("a JSON patch has at most {} operations", kMaxOperations));
  }
  size_t carried = 0;
  for (const Json& json : patch.get_array()) {
    const auto operation = ParseOperation(json);
    if (!operation.ok()) return operation.status();
    if (auto refusal = Charge(target, *operation, carried)) return refusal;
    if (!Perform(target, *operation)) {
      const std::string_view verb = operation->name == "test" ? "failed test" : "missing path";
      return DoesNotApply(
          fmt::format("{}: {} {}", verb, operation->name, WriteJson(*Find(json, "path"))));
    }
  }
  return std::nullopt;
}

}  // namespace nos::sim
