// Parts of strings, and regular expressions: contains, startsWith, endsWith, matches, find,
// findAll.
#include "cel/library/function.h"
#include "cel/library/regex.h"
#include "cel/values/list.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

bool AreStrings(Args args) { return args[0].is(Kind::kString) && args[1].is(Kind::kString); }

Value Contains(Arena&, Args args) {
  if (!AreStrings(args)) return NoSuchOverload();
  return Value::Bool(args[0].text().find(args[1].text()) != std::string_view::npos);
}
Value StartsWith(Arena&, Args args) {
  return AreStrings(args) ? Value::Bool(args[0].text().starts_with(args[1].text()))
                          : NoSuchOverload();
}
Value EndsWith(Arena&, Args args) {
  return AreStrings(args) ? Value::Bool(args[0].text().ends_with(args[1].text()))
                          : NoSuchOverload();
}

Value Matches(Arena&, Args args) {
  if (!AreStrings(args)) return NoSuchOverload();
  const auto regex = Regex::Compile(args[1].text());
  if (regex == nullptr) return Value::Error("invalid regular expression");
  return Value::Bool(regex->Matches(args[0].text()));
}

Value Find(Arena&, Args args) {
  const auto regex = Regex::Compile(args[1].text());
  if (regex == nullptr) return Value::Error("invalid regular expression");
  return Value::String(regex->Find(args[0].text()));
}

Value FindAll(Arena& arena, Args args) {
  const auto regex = Regex::Compile(args[1].text());
  if (regex == nullptr) return Value::Error("invalid regular expression");
  return FoundAll(arena, *regex, args[0].text(), args.size() == 3 ? args[2].integer() : -1);
}

}  // namespace

Value FoundAll(Arena& arena, const Regex& regex, std::string_view text, int64_t limit) {
  const std::vector<std::string_view> found = regex.FindAll(text, limit);
  const std::span<Value> values = arena.NewArray<Value>(found.size());
  for (size_t i = 0; i < found.size(); ++i) values[i] = Value::String(found[i]);
  return Value::Of(ListValue::Of(arena, values));
}

void DeclareMatching(Declarer& declare) {
  using namespace types;
  const Type* const strings = declare.types().List(&kString);
  declare.Member("contains", "contains_string", {&kString, &kString}, &kBool, Contains);
  declare.Member("endsWith", "ends_with_string", {&kString, &kString}, &kBool, EndsWith);
  declare.Member("startsWith", "starts_with_string", {&kString, &kString}, &kBool, StartsWith);
  for (const std::string_view name : {"contains", "endsWith", "startsWith"}) {
    declare.WithoutGuards(name);
  }
  declare.Global("matches", "matches", {&kString, &kString}, &kBool);
  declare.Member("matches", "matches_string", {&kString, &kString}, &kBool);
  declare.Singleton("matches", Matches, Binding::kBinary);
  declare.Member("find", "string_find_string", {&kString, &kString}, &kString, Find);
  declare.Member("findAll", "string_find_all_string", {&kString, &kString}, strings, FindAll);
  declare.Member("findAll", "string_find_all_string_int", {&kString, &kString, &kInt}, strings,
                 FindAll);
}

}  // namespace nos::cel
