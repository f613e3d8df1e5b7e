#include "cel/syntax/macros.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nos::cel {
namespace {

using Args = std::vector<Expr*>;

// Makes nodes of the expansion.
class Builder {
 public:
  explicit Builder(Ast& ast) : ast_(ast) {}

  Expr* Literal(Value value) {
    Expr* const expr = ast_.New(ExprKind::kLiteral);
    expr->literal = value;
    return expr;
  }
  Expr* Ident(std::string_view name) {
    Expr* const expr = ast_.New(ExprKind::kIdent);
    expr->name = name;
    return expr;
  }
  Expr* Accumulator() { return Ident(kAccumulator); }
  Expr* Call(std::string_view function, Args args) {
    Expr* const expr = ast_.New(ExprKind::kCall);
    expr->name = function;
    expr->args = std::move(args);
    return expr;
  }
  Expr* Member(std::string_view function, Expr* target, Args args = {}) {
    Expr* const expr = Call(function, std::move(args));
    expr->target = target;
    return expr;
  }
  Expr* List(Args elements) {
    Expr* const expr = ast_.New(ExprKind::kList);
    expr->args = std::move(elements);
    return expr;
  }
  Expr* EmptyMap() { return ast_.New(ExprKind::kMap); }
  Expr* Fold(Comprehension parts) {
    Expr* const expr = ast_.New(ExprKind::kComprehension);
    expr->comprehension = ast_.NewComprehension();
    *expr->comprehension = std::move(parts);
    return expr;
  }
  // `name` stands for `value` in `result`.
  Expr* Bind(std::string_view name, Expr* value, Expr* result) {
    return Fold({std::string(kUnused), "", std::string(name), List({}), value,
                 Literal(Value::Bool(false)), Ident(name), result});
  }
  Expr* Has(const Expr& select) {
    Expr* const expr = ast_.New(ExprKind::kSelect);
    expr->name = select.name;
    expr->target = select.target;
    expr->test_only = true;
    return expr;
  }
  Expr* Copy(const Expr& original) {
    Expr* const copy = ast_.New(original.kind);
    *copy = original;
    if (copy->target != nullptr) copy->target = Copy(*copy->target);
    for (Expr*& arg : copy->args) arg = Copy(*arg);
    if (copy->comprehension != nullptr) {
      copy->comprehension = ast_.NewComprehension();
      *copy->comprehension = *original.comprehension;
      Comprehension& parts = *copy->comprehension;
      for (Expr** part :
           {&parts.range, &parts.init, &parts.condition, &parts.step, &parts.result}) {
        *part = Copy(**part);
      }
    }
    return copy;
  }

 private:
  Ast& ast_;
};

// The variables of a comprehension: one, or two for keys and values.
struct Variables {
  std::string first;
  std::string second;
};

Result<std::string> VariableName(const Expr& expr) {
  if (expr.kind != ExprKind::kIdent) return Invalid("the variable must be a simple name");
  if (expr.name == kAccumulator || expr.name == "__result__") {
    return Invalid("the iteration variable overwrites the accumulator variable");
  }
  return expr.name;
}

Result<Variables> ReadVariables(const Args& args, size_t count) {
  Variables variables;
  NOS_ASSIGN(variables.first, VariableName(*args[0]));
  if (count == 1) return variables;
  NOS_ASSIGN(variables.second, VariableName(*args[1]));
  if (variables.first == variables.second) {
    return Invalid(fmt::format("duplicate variable name: {}", variables.first));
  }
  return variables;
}

Expr* Fold(Builder& build, Expr* target, const Variables& variables, Expr* init, Expr* condition,
           Expr* step, Expr* result) {
  return build.Fold({variables.first, variables.second, std::string(kAccumulator), target, init,
                     condition, step, result});
}

Result<Expr*> Quantifier(Builder& build, std::string_view name, Expr* target, const Args& args) {
  NOS_ASSIGN(const Variables variables, ReadVariables(args, args.size() - 1));
  Expr* const predicate = args.back();
  if (name == "all") {
    return Fold(build, target, variables, build.Literal(Value::Bool(true)),
                build.Call("@not_strictly_false", {build.Accumulator()}),
                build.Call("_&&_", {build.Accumulator(), predicate}), build.Accumulator());
  }
  if (name == "exists") {
    Expr* const unmet = build.Call("!_", {build.Accumulator()});
    return Fold(build, target, variables, build.Literal(Value::Bool(false)),
                build.Call("@not_strictly_false", {unmet}),
                build.Call("_||_", {build.Accumulator(), predicate}), build.Accumulator());
  }
  Expr* const more = build.Call("_+_", {build.Accumulator(), build.Literal(Value::Int(1))});
  return Fold(build, target, variables, build.Literal(Value::Int(0)),
              build.Literal(Value::Bool(true)),
              build.Call("_?_:_", {predicate, more, build.Accumulator()}),
              build.Call("_==_", {build.Accumulator(), build.Literal(Value::Int(1))}));
}

// A comprehension that adds something for each element, perhaps only if the filter is true.
Expr* Collect(Builder& build, Expr* target, const Variables& variables, Expr* init, Expr* step,
              Expr* filter) {
  if (filter != nullptr) step = build.Call("_?_:_", {filter, step, build.Accumulator()});
  return Fold(build, target, variables, init, build.Literal(Value::Bool(true)), step,
              build.Accumulator());
}

Expr* Append(Builder& build, Expr* element) {
  return build.Call("_+_", {build.Accumulator(), build.List({element})});
}

Result<Expr*> MapMacro(Builder& build, Expr* target, const Args& args) {
  NOS_ASSIGN(const Variables variables, ReadVariables(args, 1));
  return Collect(build, target, variables, build.List({}), Append(build, args.back()),
                 args.size() == 3 ? args[1] : nullptr);
}

Result<Expr*> Filter(Builder& build, Expr* target, const Args& args) {
  NOS_ASSIGN(const Variables variables, ReadVariables(args, 1));
  return Collect(build, target, variables, build.List({}), Append(build, args[0]), args[1]);
}

Result<Expr*> Transform(Builder& build, std::string_view name, Expr* target, const Args& args) {
  NOS_ASSIGN(const Variables variables, ReadVariables(args, 2));
  Expr* const filter = args.size() == 4 ? args[2] : nullptr;
  Expr* const transform = args.back();
  if (name == "transformList") {
    return Collect(build, target, variables, build.List({}), Append(build, transform), filter);
  }
  Args insert = {build.Accumulator()};
  if (name == "transformMap") insert.push_back(build.Ident(variables.first));
  insert.push_back(transform);
  return Collect(build, target, variables, build.EmptyMap(),
                 build.Call("cel.@mapInsert", std::move(insert)), filter);
}

Result<Expr*> Bind(Builder& build, const Args& args) {
  if (args[0]->kind != ExprKind::kIdent) {
    return Invalid("cel.bind() variable names must be simple identifiers");
  }
  return build.Bind(args[0]->name, args[1], args[2]);
}

Result<Expr*> OptionalMap(Builder& build, Expr* target, const Args& args, bool flat) {
  if (args[0]->kind != ExprKind::kIdent) return Invalid("the variable must be a simple identifier");
  Expr* result = build.Bind(args[0]->name, build.Member("value", build.Copy(*target)), args[1]);
  if (!flat) result = build.Call("optional.of", {result});
  return build.Call("_?_:_",
                    {build.Member("hasValue", target), result, build.Call("optional.none", {})});
}

Result<Expr*> SortBy(Builder& build, Expr* target, const Args& args) {
  constexpr std::string_view kInput = "@__sortBy_input__";
  if (target->kind == ExprKind::kLiteral || target->kind == ExprKind::kMap ||
      target->kind == ExprKind::kStruct) {
    return Invalid("sortBy can only be applied to a list");
  }
  NOS_ASSIGN(Expr* const keys, MapMacro(build, build.Ident(kInput), args));
  return build.Bind(kInput, target,
                    build.Member("@sortByAssociatedKeys", build.Ident(kInput), {keys}));
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Result<Expr*> ExpandMacro(Ast& ast, std::string_view name, Expr* target, const Args& args) {
  Builder build(ast);
  const size_t count = args.size();
  if (target == nullptr) {
    if (name != "has" || count != 1) return static_cast<Expr*>(nullptr);
    if (args[0]->kind != ExprKind::kSelect) return Invalid("invalid argument to has() macro");
    return build.Has(*args[0]);
  }
  if (IsOneOf(name, {"all", "exists", "exists_one", "existsOne"}) && (count == 2 || count == 3)) {
    return Quantifier(build, name, target, args);
  }
  if (name == "map" && (count == 2 || count == 3)) return MapMacro(build, target, args);
  if (name == "filter" && count == 2) return Filter(build, target, args);
  if (IsOneOf(name, {"transformList", "transformMap", "transformMapEntry"}) &&
      (count == 3 || count == 4)) {
    return Transform(build, name, target, args);
  }
  if (name == "bind" && count == 3 && target->kind == ExprKind::kIdent && target->name == "cel") {
    return Bind(build, args);
  }
  if ((name == "optMap" || name == "optFlatMap") && count == 2) {
    return OptionalMap(build, target, args, name == "optFlatMap");
  }
  if (name == "sortBy" && count == 2) return SortBy(build, target, args);
  return static_cast<Expr*>(nullptr);
}

}  // namespace nos::cel
