// Rules about literals beyond their types: regular expressions are valid, lists and maps have
// elements of one type, and formats fit their arguments.
#pragma once

#include "base/status.h"
#include "cel/syntax/ast.h"

namespace nos::cel {

// For a tree with types.
Status CheckLiterals(const Expr& root);

}  // namespace nos::cel
