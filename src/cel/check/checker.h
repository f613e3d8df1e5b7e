// Checks the types of an expression, as cel-go does, in the environment of DRA's selectors: the
// variable `device` and Kubernetes' functions. Writes types, overloads and resolved names into the
// tree.
#pragma once

#include "base/status.h"
#include "cel/syntax/ast.h"
#include "cel/types/static_type.h"

namespace nos::cel {

// A checked tree points to types in the store. Error: kInvalid with the first cause.
Status Check(Ast& ast, TypeStore& types);

}  // namespace nos::cel
