// Finds which parts of a device an expression reads.
#pragma once

#include "cel/program.h"
#include "cel/syntax/ast.h"

namespace nos::cel {

// `root`: a tree whose macros are expanded.
Reads ReadsOf(const Expr& root);

}  // namespace nos::cel
