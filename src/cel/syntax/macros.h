// Macros: has(), comprehensions (all, exists, exists_one, map, filter, transformList, transformMap,
// transformMapEntry; with one variable or two), cel.bind, optMap, optFlatMap and sortBy.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "cel/syntax/ast.h"

namespace nos::cel {

// The expression that a call stands for; null if it is no macro. Error: kInvalid if its arguments
// do not fit.
Result<Expr*> ExpandMacro(Ast& ast, std::string_view name, Expr* target,
                          const std::vector<Expr*>& args);

}  // namespace nos::cel
