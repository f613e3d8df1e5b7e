// JSON as a tree, and as text. The tree is Boost.JSON's value: objects keep insertion order,
// integers and doubles are distinct. This is the only third-party type in our headers, because
// every library above exchanges untyped Kubernetes objects in it.
//
//   NOS_ASSIGN(Json pod, ParseJson(text));
//   const Json* name = Find(pod, "metadata", "name");
//
// Values are plain data: no locking, copies are deep.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

// Error: kInvalid with the byte offset, or for a number beyond double. Depth is limited to 100, so
// hostile input cannot exhaust the stack. Duplicate keys: the last wins. A number too small for a
// double becomes 0.
Result<Json> ParseJson(std::string_view text);
std::string WriteJson(const Json& value);
// Indented by two spaces, for terminals.
std::string WriteJsonPretty(const Json& value);

// The value at a path of keys; null if any step is missing or not an object.
const Json* Find(const Json& value, std::string_view key);
template <typename... Keys>
const Json* Find(const Json& value, std::string_view key, const Keys&... rest) {
  const Json* next = Find(value, key);
  return next == nullptr ? nullptr : Find(*next, std::string_view(rest)...);
}
// The string at a path; "" if missing or not a string. Views into `value`.
template <typename... Keys>
std::string_view FindString(const Json& value, const Keys&... keys) {
  const Json* found = Find(value, std::string_view(keys)...);
  if (found == nullptr || !found->is_string()) return {};
  return {found->get_string().data(), found->get_string().size()};
}
inline std::string_view View(const boost::json::string& s) { return {s.data(), s.size()}; }

// The object at a path of keys. Missing steps are created; nulls and scalars are replaced.
JsonObject& MakeObject(Json& value, std::string_view key);
template <typename... Keys>
JsonObject& MakeObject(Json& value, std::string_view key, const Keys&... rest) {
  MakeObject(value, key);
  return MakeObject(*value.get_object().if_contains(key), std::string_view(rest)...);
}

}  // namespace nos
