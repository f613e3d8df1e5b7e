// Turns a checked tree into the steps that evaluate it. Constant parts are computed here.
#pragma once

#include <memory>

#include "base/status.h"
#include "cel/eval/node.h"
#include "cel/syntax/ast.h"

namespace nos::cel {

// Immutable; owns the constants that its nodes refer to.
class Plan {
 public:
  // Keeps the tree, because literals lie in it. Error: kInvalid if a constant part fails.
  static Result<std::unique_ptr<const Plan>> Make(std::unique_ptr<Ast> ast);

  const Node& root() const { return *root_; }
  size_t slot_count() const { return slot_count_; }

 private:
  friend class Planner;
  std::unique_ptr<Ast> ast_;
  Arena constants_;
  NodePtr root_;
  size_t slot_count_ = 0;
};

}  // namespace nos::cel
