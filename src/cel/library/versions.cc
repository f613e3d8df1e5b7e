// Semantic versions: semver("1.2.3").isLessThan(...).
#include "cel/library/function.h"
#include "cel/values/semver.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

const Semver* ParseVersion(Arena& arena, Args args) {
  const bool tolerant = args.size() == 2 && args[1].boolean();
  return tolerant ? Semver::ParseTolerant(arena, args[0].text())
                  : Semver::Parse(arena, args[0].text());
}

Value Parse(Arena& arena, Args args) {
  const Semver* const version = ParseVersion(arena, args);
  return version == nullptr ? Value::Error("not a semantic version") : Value::Of(version);
}
Value IsSemver(Arena& arena, Args args) {
  return Value::Bool(ParseVersion(arena, args) != nullptr);
}
Value CompareTo(Arena&, Args args) {
  return Value::Int(args[0].semver().Compare(args[1].semver()));
}
Value IsGreaterThan(Arena&, Args args) {
  return Value::Bool(args[0].semver().Compare(args[1].semver()) > 0);
}
Value IsLessThan(Arena&, Args args) {
  return Value::Bool(args[0].semver().Compare(args[1].semver()) < 0);
}
Value Major(Arena&, Args args) { return Value::Int(static_cast<int64_t>(args[0].semver().major)); }
Value Minor(Arena&, Args args) { return Value::Int(static_cast<int64_t>(args[0].semver().minor)); }
Value Patch(Arena&, Args args) { return Value::Int(static_cast<int64_t>(args[0].semver().patch)); }

}  // namespace

void DeclareVersions(Declarer& declare) {
  using namespace types;
  const Type* const v = &kSemver;
  declare.Global("semver", "string_to_semver", {&kString}, v, Parse);
  declare.Global("semver", "string_bool_to_semver", {&kString, &kBool}, v, Parse);
  declare.Global("isSemver", "is_semver_string", {&kString}, &kBool, IsSemver);
  declare.Global("isSemver", "is_semver_string_bool", {&kString, &kBool}, &kBool, IsSemver);
  declare.Member("isGreaterThan", "semver_is_greater_than", {v, v}, &kBool, IsGreaterThan);
  declare.Member("isLessThan", "semver_is_less_than", {v, v}, &kBool, IsLessThan);
  declare.Member("compareTo", "semver_compare_to", {v, v}, &kInt, CompareTo);
  declare.Member("major", "semver_major", {v}, &kInt, Major);
  declare.Member("minor", "semver_minor", {v}, &kInt, Minor);
  declare.Member("patch", "semver_patch", {v}, &kInt, Patch);
}

}  // namespace nos::cel
