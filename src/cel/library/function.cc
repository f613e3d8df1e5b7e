#include "cel/library/function.h"

#include <algorithm>
#include <utility>

namespace nos::cel {
namespace {

void CollectParams(const Type& type, std::vector<std::string>& names) {
  if (type.is(TypeKind::kParam) &&
      std::find(names.begin(), names.end(), type.name) == names.end()) {
    names.push_back(type.name);
  }
  for (const Type* param : type.params) CollectParams(*param, names);
}

}  // namespace

bool Overload::Accepts(std::span<const Value> values) const {
  if (values.size() != args.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].IsError() || !args[i]->AcceptsValue(values[i])) return false;
  }
  return true;
}

const FunctionTable& FunctionTable::Get() {
  static const FunctionTable* const table = [] {
    auto* const made = new FunctionTable;
    Declarer declare(*made);
    // In the order in which upstream's environment is built: it decides which overload is tried
    // first.
    DeclareOperators(declare);
    DeclareConversions(declare);
    DeclareMatching(declare);
    DeclareTimes(declare);
    DeclareUrls(declare);
    DeclareAuthorization(declare);
    DeclareOptionals(declare);
    DeclareQuantities(declare);
    DeclareStrings(declare);
    DeclareSets(declare);
    DeclareNetworks(declare);
    DeclareFormats(declare);
    DeclareVersions(declare);
    DeclareLists(declare);
    DeclareListStatistics(declare);
    return made;
  }();
  return *table;
}

const Function* FunctionTable::Find(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

Function& Declarer::At(std::string_view name) {
  Function& function = table_.functions_[std::string(name)];
  function.name = name;
  return function;
}

void Declarer::Add(std::string_view name, Overload overload) {
  CollectParams(*overload.result, overload.type_params);
  for (const Type* arg : overload.args) CollectParams(*arg, overload.type_params);
  if (overload.run != nullptr && overload.binding == Binding::kNone) {
    overload.binding = overload.args.size() == 1   ? Binding::kUnary
                       : overload.args.size() == 2 ? Binding::kBinary
                                                   : Binding::kVariadic;
  }
  At(name).overloads.push_back(std::move(overload));
}

void Declarer::Global(std::string_view name, std::string_view id, Types args, const Type* result,
                      Implementation run, Binding binding) {
  Add(name, {std::string(id), false, std::move(args), result, run, binding, {}});
}

void Declarer::Member(std::string_view name, std::string_view id, Types args, const Type* result,
                      Implementation run, Binding binding) {
  Add(name, {std::string(id), true, std::move(args), result, run, binding, {}});
}

void Declarer::Singleton(std::string_view name, Implementation run, Binding binding) {
  Function& function = At(name);
  function.singleton = run;
  function.singleton_binding = binding;
}

void Declarer::WithoutGuards(std::string_view name) { At(name).guards = false; }

Value ErrorText(Arena& arena, std::string_view text) { return Value::Error(arena.Copy(text)); }

Value StringValue(Arena& arena, std::string_view text) { return Value::String(arena.Copy(text)); }

}  // namespace nos::cel
