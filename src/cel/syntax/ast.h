// The syntax tree of an expression, after its macros are expanded. The checker writes types and
// overloads into it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "cel/values/dynamic.h"

namespace nos::cel {

struct Type;
struct Overload;
struct Function;
struct Expr;

enum class ExprKind : uint8_t {
  kLiteral,
  kIdent,
  kSelect,  // target.name; with test_only has(target.name)
  kCall,    // name(args) or target.name(args)
  kList,    // args
  kMap,     // args: key, value, key, value
  kStruct,  // name{...}
  kComprehension,
};

struct Comprehension {
  std::string variable;
  std::string second_variable;  // or empty
  std::string accumulator;
  Expr* range = nullptr;
  Expr* init = nullptr;
  Expr* condition = nullptr;
  Expr* step = nullptr;
  Expr* result = nullptr;
};

struct Expr {
  ExprKind kind = ExprKind::kLiteral;
  bool test_only = false;
  Value literal;
  std::string name;
  Expr* target = nullptr;
  std::vector<Expr*> args;
  std::vector<bool> optional;  // of elements or entries; empty if none is
  Comprehension* comprehension = nullptr;

  // By the checker.
  const Type* type = nullptr;
  const Function* function = nullptr;
  std::vector<const Overload*> overloads;
  bool global = false;  // an identifier that skips local variables of the same name

  bool IsOptional(size_t i) const { return i < optional.size() && optional[i]; }
};

// Names that expressions cannot write.
inline constexpr std::string_view kAccumulator = "@result";
inline constexpr std::string_view kUnused = "#unused";

class Ast {
 public:
  // Throws TooLarge beyond the limit: macros that repeat their operand double the tree.
  Expr* New(ExprKind kind);
  Comprehension* NewComprehension();
  Arena& arena() { return arena_; }
  size_t size() const { return nodes_.size(); }
  Expr* root = nullptr;

  struct TooLarge {};

 private:
  static constexpr size_t kMaxNodes = 200'000;
  std::deque<Expr> nodes_;
  std::deque<Comprehension> comprehensions_;
  Arena arena_;  // texts of literals
};

}  // namespace nos::cel
