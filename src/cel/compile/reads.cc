#include "cel/compile/reads.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace nos::cel {
namespace {

bool IsDevice(const Expr& expr) {
  return expr.kind == ExprKind::kIdent && (expr.name == "device" || expr.name == ".device");
}

bool IsField(const Expr& expr, std::string_view name) {
  return expr.kind == ExprKind::kSelect && !expr.test_only && expr.name == name &&
         IsDevice(*expr.target);
}

// The map that is looked into, and the key: map.key, map[key], map.?key, map[?key], has(map.key).
struct LookUp {
  const Expr* map = nullptr;
  const Expr* key = nullptr;  // null: `name`
  std::string_view name;
};

std::optional<LookUp> AsLookUp(const Expr& expr) {
  if (expr.kind == ExprKind::kSelect) return LookUp{expr.target, nullptr, expr.name};
  const bool call = expr.kind == ExprKind::kCall && expr.target == nullptr && expr.args.size() == 2;
  if (!call || (expr.name != "_[_]" && expr.name != "_[?_]" && expr.name != "_?._")) {
    return std::nullopt;
  }
  const Expr& key = *expr.args[1];
  if (key.kind == ExprKind::kLiteral && key.literal.is(Kind::kString)) {
    return LookUp{expr.args[0], nullptr, key.literal.text()};
  }
  return LookUp{expr.args[0], &key, {}};
}

// device.attributes[domain].id, with constant names; device.driver may be the domain.
std::optional<Reads::Path> AsPath(const Expr& expr) {
  const std::optional<LookUp> id = AsLookUp(expr);
  if (!id || id->key != nullptr) return std::nullopt;
  const std::optional<LookUp> domain = AsLookUp(*id->map);
  if (!domain || id->map->test_only) return std::nullopt;
  if (domain->key != nullptr && !IsField(*domain->key, "driver")) return std::nullopt;
  const bool capacity = IsField(*domain->map, "capacity");
  if (!capacity && !IsField(*domain->map, "attributes")) return std::nullopt;
  // An empty constant is no name of a domain, so it cannot be confused with the driver's.
  if (domain->key == nullptr && domain->name.empty()) return std::nullopt;
  return Reads::Path{capacity, std::string(domain->name), std::string(id->name)};
}

// A local variable named `device` may hide the device: then too much is found, which does no harm.
void Visit(const Expr* expr, Reads& reads) {
  if (expr == nullptr || reads.all) return;
  if (std::optional<Reads::Path> path = AsPath(*expr)) {
    reads.paths.push_back(std::move(*path));
    return;
  }
  if (IsField(*expr, "driver") || IsField(*expr, "allowMultipleAllocations")) return;
  if (IsDevice(*expr)) reads.all = true;
  Visit(expr->target, reads);
  for (const Expr* arg : expr->args) Visit(arg, reads);
  if (expr->comprehension == nullptr) return;
  const Comprehension& comprehension = *expr->comprehension;
  for (const Expr* part : {comprehension.range, comprehension.init, comprehension.condition,
                           comprehension.step, comprehension.result}) {
    Visit(part, reads);
  }
}

}  // namespace

Reads ReadsOf(const Expr& root) {
  Reads reads;
  Visit(&root, reads);
  if (reads.all) reads.paths.clear();
  std::sort(reads.paths.begin(), reads.paths.end());
  reads.paths.erase(std::unique(reads.paths.begin(), reads.paths.end()), reads.paths.end());
  return reads;
}

}  // namespace nos::cel
