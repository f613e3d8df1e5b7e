#include "cel/check/literal_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "cel/library/format_string.h"
#include "cel/library/function.h"
#include "cel/library/regex.h"
#include "cel/types/static_type.h"

namespace nos::cel {
namespace {

bool IsText(const Expr& expr) {
  return expr.kind == ExprKind::kLiteral && expr.literal.is(Kind::kString);
}

Status Mismatch(const Type& expected, const Type& found) {
  return Invalid(
      fmt::format("expected type '{}' but found '{}'", expected.ToString(), found.ToString()));
}

// An optional element of unknown type has no type to compare.
const Type* ElementType(const Expr& expr, bool optional) {
  if (!optional) return expr.type;
  return expr.type->params.empty() ? nullptr : expr.type->params[0];
}

Status CheckList(const Expr& list) {
  const Type* first = nullptr;
  for (size_t i = 0; i < list.args.size(); ++i) {
    const Type* const type = ElementType(*list.args[i], list.IsOptional(i));
    if (type == nullptr) return Invalid("an optional element has no optional type");
    if (first == nullptr) first = type;
    if (!first->IsEquivalent(*type)) return Mismatch(*first, *type);
  }
  return Status::Ok();
}

Status CheckMap(const Expr& map) {
  const Type* key = nullptr;
  const Type* value = nullptr;
  for (size_t i = 0; i < map.args.size(); i += 2) {
    const Type* const type = ElementType(*map.args[i + 1], map.IsOptional(i / 2));
    if (type == nullptr) return Invalid("an optional entry has no optional type");
    if (key == nullptr) {
      key = map.args[i]->type;
      value = type;
    }
    if (!key->IsEquivalent(*map.args[i]->type)) return Mismatch(*key, *map.args[i]->type);
    if (!value->IsEquivalent(*type)) return Mismatch(*value, *type);
  }
  return Status::Ok();
}

bool IsOneOf(const Type& type, std::initializer_list<TypeKind> kinds) {
  return type.is(TypeKind::kDyn) || std::find(kinds.begin(), kinds.end(), type.kind) != kinds.end();
}

bool Printable(const Expr& expr) {
  if (!IsOneOf(*expr.type,
               {TypeKind::kList, TypeKind::kMap, TypeKind::kInt, TypeKind::kUint, TypeKind::kDouble,
                TypeKind::kBool, TypeKind::kString, TypeKind::kTimestamp, TypeKind::kBytes,
                TypeKind::kDuration, TypeKind::kType, TypeKind::kNull})) {
    return false;
  }
  if (expr.kind != ExprKind::kList && expr.kind != ExprKind::kMap) return true;
  return std::all_of(expr.args.begin(), expr.args.end(),
                     [](const Expr* arg) { return Printable(*arg); });
}

bool Fits(char clause, const Expr& arg) {
  switch (clause) {
    case 's':
      return Printable(arg);
    case 'f':
    case 'e':
      return IsOneOf(*arg.type, {TypeKind::kDouble, TypeKind::kString});
    case 'b':
      return IsOneOf(*arg.type, {TypeKind::kInt, TypeKind::kUint, TypeKind::kBool});
    case 'x':
    case 'X':
      return IsOneOf(*arg.type,
                     {TypeKind::kInt, TypeKind::kUint, TypeKind::kString, TypeKind::kBytes});
    default:
      return IsOneOf(*arg.type, {TypeKind::kInt, TypeKind::kUint});
  }
}

Status CheckFormat(const Expr& call) {
  if (call.target == nullptr || !IsText(*call.target) || call.args[0]->kind != ExprKind::kList) {
    return Status::Ok();
  }
  const auto& args = call.args[0]->args;
  const auto clauses = FormatClauses(call.target->literal.text(), args.size());
  if (!clauses) return Invalid("could not parse the format string");
  if (clauses->size() < args.size()) {
    return Invalid("too many arguments supplied to string.format");
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (!Fits((*clauses)[i], *args[i])) {
      return Invalid(fmt::format("clause '%{}' cannot be used on '{}'", (*clauses)[i],
                                 args[i]->type->ToString()));
    }
  }
  return Status::Ok();
}

Status Visit(const Expr& expr, bool in_format) {
  switch (expr.kind) {
    case ExprKind::kList:
      if (!in_format) NOS_RETURN_IF_ERROR(CheckList(expr));
      break;
    case ExprKind::kMap:
      if (!in_format) NOS_RETURN_IF_ERROR(CheckMap(expr));
      break;
    case ExprKind::kCall:
      if (expr.name == "matches" && IsText(*expr.args[0]) &&
          Regex::Compile(expr.args[0]->literal.text()) == nullptr) {
        return Invalid("invalid matches argument");
      }
      if (expr.name == "format") {
        NOS_RETURN_IF_ERROR(CheckFormat(expr));
        in_format = true;
      }
      break;
    default:
      break;
  }
  if (expr.target != nullptr) NOS_RETURN_IF_ERROR(Visit(*expr.target, in_format));
  for (const Expr* arg : expr.args) {
    if (arg->type != nullptr) NOS_RETURN_IF_ERROR(Visit(*arg, in_format));
  }
  if (const Comprehension* const parts = expr.comprehension) {
    for (const Expr* part :
         {parts->range, parts->init, parts->condition, parts->step, parts->result}) {
      NOS_RETURN_IF_ERROR(Visit(*part, in_format));
    }
  }
  return Status::Ok();
}

}  // namespace

Status CheckLiterals(const Expr& root) { return Visit(root, false); }

}  // namespace nos::cel
