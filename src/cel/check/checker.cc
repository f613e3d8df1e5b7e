#include "cel/check/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cel/check/literal_rules.h"
#include "cel/check/unifier.h"
#include "cel/library/function.h"

namespace nos::cel {
namespace {

struct TypeError {
  std::string message;
};

template <typename... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) {
  throw TypeError{fmt::format(format, std::forward<Args>(args)...)};
}

std::string_view WithoutDot(std::string_view name) {
  return name.starts_with('.') ? name.substr(1) : name;
}

// "a.b.c" for such a chain of selections.
std::optional<std::string> QualifiedName(const Expr& expr) {
  if (expr.kind == ExprKind::kIdent) return expr.name;
  if (expr.kind != ExprKind::kSelect || expr.test_only) return std::nullopt;
  auto prefix = QualifiedName(*expr.target);
  if (!prefix) return std::nullopt;
  return *prefix + "." + expr.name;
}

class Checker {
 public:
  explicit Checker(TypeStore& types)
      : types_(types),
        unifier_(types),
        attributes_(types.Map(&types::kString, types.Map(&types::kString, &types::kDyn))),
        capacity_(types.Map(&types::kString, types.Map(&types::kString, &types::kQuantity))) {}

  void Run(Expr& root) {
    Visit(root);
    Finish(root);
  }

 private:
  struct Variable {
    std::string name;
    const Type* type;
  };

  const Type* Resolved(const Type* type) { return unifier_.Substitute(type, false); }

  void Visit(Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kLiteral:
        return VisitLiteral(expr);
      case ExprKind::kIdent:
        return VisitIdent(expr);
      case ExprKind::kSelect:
        return VisitSelect(expr);
      case ExprKind::kCall:
        return VisitCall(expr);
      case ExprKind::kList:
        return VisitList(expr);
      case ExprKind::kMap:
        return VisitMap(expr);
      case ExprKind::kStruct:
        Fail("undeclared reference to '{}'", expr.name);
      case ExprKind::kComprehension:
        return VisitComprehension(expr);
    }
  }

  void VisitLiteral(Expr& expr) {
    switch (expr.literal.kind()) {
      case Kind::kNull:
        expr.type = &types::kNull;
        break;
      case Kind::kBool:
        expr.type = &types::kBool;
        break;
      case Kind::kInt:
        expr.type = &types::kInt;
        break;
      case Kind::kUint:
        expr.type = &types::kUint;
        break;
      case Kind::kDouble:
        expr.type = &types::kDouble;
        break;
      case Kind::kString:
        expr.type = &types::kString;
        break;
      default:
        expr.type = &types::kBytes;
        break;
    }
  }

  const Variable* FindLocal(std::string_view name) const {
    const auto found = std::find_if(scope_.rbegin(), scope_.rend(),
                                    [&](const Variable& v) { return v.name == name; });
    return found == scope_.rend() ? nullptr : &*found;
  }

  // The type that a global name stands for, or the type of the variable `device`.
  bool ResolveGlobal(std::string_view name, Expr& expr) {
    if (name == "device") {
      expr.type = &types::kDevice;
      return true;
    }
    const Type* const type = FindNamedType(name);
    if (type == nullptr) return false;
    expr.type = types_.TypeOf(type);
    return true;
  }

  void VisitIdent(Expr& expr) {
    const std::string name(WithoutDot(expr.name));
    const Variable* const local = FindLocal(name);
    if (local != nullptr && expr.name == name) {
      expr.type = local->type;
      return;
    }
    if (!ResolveGlobal(name, expr)) Fail("undeclared reference to '{}'", expr.name);
    expr.global = local != nullptr;
    expr.name = name;
  }

  // A name with dots, of a type.
  bool ResolveQualified(Expr& expr) {
    const auto name = QualifiedName(expr);
    if (!name) return false;
    const std::string_view first = std::string_view(*name).substr(0, name->find('.', 1));
    if (FindLocal(first) != nullptr) return false;
    if (!ResolveGlobal(WithoutDot(*name), expr)) return false;
    expr.kind = ExprKind::kIdent;
    expr.name = WithoutDot(*name);
    expr.target = nullptr;
    return true;
  }

  void VisitSelect(Expr& expr) {
    if (!expr.test_only && ResolveQualified(expr)) return;
    const Type* const type = FieldType(*expr.target, expr.name, false);
    expr.type = expr.test_only ? &types::kBool : Resolved(type);
  }

  // Checks the operand.
  const Type* FieldType(Expr& operand, const std::string& field, bool optional) {
    Visit(operand);
    const Type* target = Resolved(operand.type);
    if (target->IsOptional()) {
      optional = true;
      target = target->params.empty() ? &types::kDyn : target->params[0];
    }
    const Type* result = &types::kDyn;
    switch (target->kind) {
      case TypeKind::kMap:
        result = target->params[1];
        break;
      case TypeKind::kStruct:
        result = DeviceField(*target, field);
        break;
      case TypeKind::kParam:
        unifier_.Assign(types::kDyn, *target);
        break;
      case TypeKind::kDyn:
        break;
      default:
        Fail("type '{}' does not support field selection", target->ToString());
    }
    return optional ? types_.Optional(result) : result;
  }

  const Type* DeviceField(const Type& type, const std::string& field) const {
    if (&type == &types::kDevice) {
      if (field == "driver") return &types::kString;
      if (field == "attributes") return attributes_;
      if (field == "capacity") return capacity_;
      if (field == "allowMultipleAllocations") return &types::kBool;
    }
    Fail("undefined field '{}'", field);
  }

  void VisitCall(Expr& expr) {
    if (expr.name == "_?._") return VisitOptionalSelect(expr);
    for (Expr* arg : expr.args) Visit(*arg);
    const FunctionTable& functions = FunctionTable::Get();
    if (expr.target != nullptr) {
      if (const auto prefix = QualifiedName(*expr.target)) {
        const std::string name = *prefix + "." + expr.name;
        if (const Function* const function = functions.Find(WithoutDot(name))) {
          expr.target = nullptr;
          return Resolve(expr, *function);
        }
      }
      Visit(*expr.target);
    }
    const std::string_view name =
        expr.target == nullptr ? WithoutDot(expr.name) : std::string_view(expr.name);
    const Function* const function = functions.Find(name);
    if (function == nullptr) Fail("undeclared reference to '{}'", expr.name);
    Resolve(expr, *function);
  }

  void VisitOptionalSelect(Expr& expr) {
    const Type* const type =
        FieldType(*expr.args[0], std::string(expr.args[1]->literal.text()), true);
    expr.args[1]->type = &types::kString;
    expr.type = Resolved(type);
    expr.function = FunctionTable::Get().Find(expr.name);
    expr.overloads = {&expr.function->overloads[0]};
  }

  // Chooses the overloads that fit, and the type of the result.
  void Resolve(Expr& expr, const Function& function) {
    expr.name = function.name;
    expr.function = &function;
    std::vector<const Type*> args;
    if (expr.target != nullptr) args.push_back(expr.target->type);
    for (const Expr* arg : expr.args) args.push_back(arg->type);
    if (function.name == "_&&_" || function.name == "_||_") {
      for (const Type* arg : args) {
        if (!unifier_.Assign(*arg, types::kBool)) FailOverload(function, args);
      }
      expr.overloads = {&function.overloads[0]};
      expr.type = &types::kBool;
      return;
    }
    const Type* result = nullptr;
    for (const Overload& overload : function.overloads) {
      if (overload.member != (expr.target != nullptr) || overload.args.size() != args.size())
        continue;
      const Signature signature = Instantiate(overload);
      if (!unifier_.AssignAll(args, signature.args)) continue;
      expr.overloads.push_back(&overload);
      const Type* const type = Resolved(signature.result);
      if (result == nullptr) {
        result = type;
      } else if (!result->is(TypeKind::kDyn) && !type->IsExactly(*result)) {
        result = &types::kDyn;
      }
    }
    if (result == nullptr) FailOverload(function, args);
    expr.type = result;
  }

  [[noreturn]] void FailOverload(const Function& function, const std::vector<const Type*>& args) {
    std::string text;
    for (const Type* arg : args) {
      if (!text.empty()) text += ", ";
      text += unifier_.Substitute(arg, true)->ToString();
    }
    Fail("found no matching overload for '{}' applied to '({})'", function.name, text);
  }

  struct Signature {
    std::vector<const Type*> args;
    const Type* result = nullptr;
  };

  // The overload with fresh type variables.
  Signature Instantiate(const Overload& overload) {
    if (overload.type_params.empty()) return {overload.args, overload.result};
    std::vector<const Type*> variables;
    for (size_t i = 0; i < overload.type_params.size(); ++i) {
      variables.push_back(unifier_.NewVariable());
    }
    Signature signature;
    for (const Type* arg : overload.args) {
      signature.args.push_back(Replace(arg, overload.type_params, variables));
    }
    signature.result = Replace(overload.result, overload.type_params, variables);
    return signature;
  }

  const Type* Replace(const Type* type, const std::vector<std::string>& names,
                      const std::vector<const Type*>& variables) {
    if (type->is(TypeKind::kParam)) {
      const auto found = std::find(names.begin(), names.end(), type->name);
      return variables[static_cast<size_t>(found - names.begin())];
    }
    if (type->params.empty()) return type;
    std::vector<const Type*> params;
    for (const Type* param : type->params) params.push_back(Replace(param, names, variables));
    return types_.With(*type, std::move(params));
  }

  // The type of an element that may be optional.
  const Type* Unwrap(const Type* type, bool optional) {
    if (!optional) return type;
    if (type->IsOptional() && !type->params.empty()) return type->params[0];
    if (!type->is(TypeKind::kDyn)) Fail("an optional element is not of an optional type");
    return type;
  }

  const Type* Join(const Type* previous, const Type* current) {
    if (previous == nullptr) return current;
    // Elements of several types are refused later, but for those of a format (literal_rules.h).
    if (!unifier_.Assign(*previous, *current)) return &types::kDyn;
    return Unifier::MostGeneral(previous, current);
  }

  void VisitList(Expr& expr) {
    const Type* element = nullptr;
    for (size_t i = 0; i < expr.args.size(); ++i) {
      Visit(*expr.args[i]);
      element = Join(element, Unwrap(expr.args[i]->type, expr.IsOptional(i)));
    }
    expr.type = types_.List(element == nullptr ? unifier_.NewVariable() : element);
  }

  void VisitMap(Expr& expr) {
    const Type* key = nullptr;
    const Type* value = nullptr;
    for (size_t i = 0; i < expr.args.size(); i += 2) {
      Visit(*expr.args[i]);
      key = Join(key, expr.args[i]->type);
      Visit(*expr.args[i + 1]);
      value = Join(value, Unwrap(expr.args[i + 1]->type, expr.IsOptional(i / 2)));
    }
    if (key == nullptr) {
      key = unifier_.NewVariable();
      value = unifier_.NewVariable();
    }
    expr.type = types_.Map(key, value);
  }

  void VisitComprehension(Expr& expr) {
    Comprehension& parts = *expr.comprehension;
    Visit(*parts.range);
    Visit(*parts.init);
    const Type* const range = Resolved(parts.range->type);
    const Type* const accumulator = parts.init->type;
    const Type* first = &types::kDyn;
    const Type* second = &types::kDyn;
    const bool two = !parts.second_variable.empty();
    switch (range->kind) {
      case TypeKind::kList:
        first = two ? &types::kInt : range->params[0];
        second = range->params[0];
        break;
      case TypeKind::kMap:
        first = range->params[0];
        second = range->params[1];
        break;
      case TypeKind::kDyn:
      case TypeKind::kParam:
        unifier_.Assign(types::kDyn, *range);
        break;
      default:
        Fail("expression of type '{}' cannot be range of a comprehension", range->ToString());
    }
    const size_t outer = scope_.size();
    scope_.push_back({parts.accumulator, accumulator});
    scope_.push_back({parts.variable, first});
    if (two) scope_.push_back({parts.second_variable, second});
    Visit(*parts.condition);
    Assert(*parts.condition, types::kBool);
    Visit(*parts.step);
    Assert(*parts.step, *accumulator);
    scope_.resize(outer + 1);
    Visit(*parts.result);
    scope_.resize(outer);
    expr.type = Resolved(parts.result->type);
  }

  void Assert(const Expr& expr, const Type& type) {
    if (!unifier_.Assign(type, *expr.type)) {
      Fail("expected type '{}' but found '{}'", unifier_.Substitute(&type, true)->ToString(),
           unifier_.Substitute(expr.type, true)->ToString());
    }
  }

  // Replaces all type variables.
  void Finish(Expr& expr) {
    if (expr.type != nullptr) expr.type = unifier_.Substitute(expr.type, true);
    if (expr.target != nullptr) Finish(*expr.target);
    for (Expr* arg : expr.args) Finish(*arg);
    if (const Comprehension* const parts = expr.comprehension) {
      for (Expr* part : {parts->range, parts->init, parts->condition, parts->step, parts->result}) {
        Finish(*part);
      }
    }
  }

  TypeStore& types_;
  Unifier unifier_;
  std::vector<Variable> scope_;
  const Type* attributes_;
  const Type* capacity_;
};

}  // namespace

Status Check(Ast& ast, TypeStore& types) {
  try {
    Checker(types).Run(*ast.root);
  } catch (const TypeError& error) {
    return Invalid(error.message);
  } catch (const TypeStore::TooComplex&) {
    return Invalid("the types of the expression are too complex");
  }
  return CheckLiterals(*ast.root);
}

}  // namespace nos::cel
