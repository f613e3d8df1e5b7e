#include "cel/syntax/ast.h"

namespace nos::cel {

Expr* Ast::New(ExprKind kind) {
  if (nodes_.size() >= kMaxNodes) throw TooLarge();
  nodes_.emplace_back();
  nodes_.back().kind = kind;
  return &nodes_.back();
}

Comprehension* Ast::NewComprehension() {
  comprehensions_.emplace_back();
  return &comprehensions_.back();
}

}  // namespace nos::cel
