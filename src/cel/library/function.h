// Functions that expressions may call, with their overloads.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cel/types/static_type.h"
#include "cel/values/dynamic.h"

namespace nos::cel {

// Arguments are as many as declared, and of the declared types unless guards are off. An error
// among them never reaches an implementation, unless the overload is not strict.
using Implementation = Value (*)(Arena& arena, std::span<const Value> args);

// The form in which upstream binds an implementation decides how its arguments are evaluated: all
// of them for one or two, else up to the first error.
enum class Binding : uint8_t { kNone, kUnary, kBinary, kVariadic };

struct Overload {
  std::string id;
  bool member = false;
  std::vector<const Type*> args;
  const Type* result = nullptr;
  Implementation run = nullptr;
  Binding binding = Binding::kNone;
  std::vector<std::string> type_params;

  bool Accepts(std::span<const Value> values) const;
};

struct Function {
  std::string name;
  std::vector<Overload> overloads;
  // If set, it serves all overloads and checks the types itself.
  Implementation singleton = nullptr;
  Binding singleton_binding = Binding::kNone;
  bool guards = true;
};

// All functions of the environment that DRA's selectors have. Immutable.
class FunctionTable {
 public:
  static const FunctionTable& Get();
  // Null if there is none.
  const Function* Find(std::string_view name) const;

 private:
  friend class Declarer;
  std::map<std::string, Function, std::less<>> functions_;
  TypeStore types_;
};

// Fills the table.
class Declarer {
 public:
  explicit Declarer(FunctionTable& table) : table_(table) {}

  TypeStore& types() { return table_.types_; }
  // A type variable.
  const Type* Param(std::string_view name) { return types().Param(name); }

  using Types = std::vector<const Type*>;
  void Global(std::string_view name, std::string_view id, Types args, const Type* result,
              Implementation run = nullptr, Binding binding = Binding::kNone);
  void Member(std::string_view name, std::string_view id, Types args, const Type* result,
              Implementation run = nullptr, Binding binding = Binding::kNone);
  void Singleton(std::string_view name, Implementation run, Binding binding);
  void WithoutGuards(std::string_view name);

 private:
  void Add(std::string_view name, Overload overload);
  Function& At(std::string_view name);
  FunctionTable& table_;
};

// An error with a text that depends on the arguments.
Value ErrorText(Arena& arena, std::string_view text);
Value StringValue(Arena& arena, std::string_view text);

class Regex;
Value FoundAll(Arena& arena, const Regex& regex, std::string_view text, int64_t limit);

// Each declares the functions of one library.
void DeclareOperators(Declarer& declare);
void DeclareConversions(Declarer& declare);
void DeclareTimes(Declarer& declare);
void DeclareMatching(Declarer& declare);
void DeclareOptionals(Declarer& declare);
void DeclareUrls(Declarer& declare);
void DeclareAuthorization(Declarer& declare);
void DeclareQuantities(Declarer& declare);
void DeclareStrings(Declarer& declare);
void DeclareSets(Declarer& declare);
void DeclareNetworks(Declarer& declare);
void DeclareFormats(Declarer& declare);
void DeclareVersions(Declarer& declare);
void DeclareLists(Declarer& declare);
void DeclareListStatistics(Declarer& declare);

}  // namespace nos::cel
