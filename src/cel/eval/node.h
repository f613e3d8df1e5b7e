// The steps of a program. Each charges what upstream charges for it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cel/eval/call_cost.h"
#include "cel/eval/frame.h"
#include "cel/library/function.h"
#include "cel/library/regex.h"

namespace nos::cel {

class AttributeNode;

class Node {
 public:
  virtual ~Node() = default;
  virtual Value Run(Frame& frame) const = 0;
  // The value, if it is known when the program is compiled.
  virtual const Value* Constant() const { return nullptr; }
  virtual AttributeNode* AsAttribute() { return nullptr; }
};

using NodePtr = std::unique_ptr<const Node>;
using Nodes = std::vector<NodePtr>;

class ConstantNode final : public Node {
 public:
  explicit ConstantNode(Value value) : value_(value) {}
  Value Run(Frame&) const override { return value_; }
  const Value* Constant() const override { return &value_; }

 private:
  Value value_;
};

// "&&" and "||": an operand that decides hides the errors of the others.
class LogicNode final : public Node {
 public:
  LogicNode(bool decisive, NodePtr left, NodePtr right)
      : decisive_(decisive), left_(std::move(left)), right_(std::move(right)) {}
  Value Run(Frame& frame) const override;

 private:
  bool decisive_;  // true for "||"
  NodePtr left_;
  NodePtr right_;
};

class EqualityNode final : public Node {
 public:
  EqualityNode(bool equal, NodePtr left, NodePtr right)
      : equal_(equal), left_(std::move(left)), right_(std::move(right)) {}
  Value Run(Frame& frame) const override;

 private:
  bool equal_;
  NodePtr left_;
  NodePtr right_;
};

// False only for false: errors and everything else do not end a comprehension.
class NotFalseNode final : public Node {
 public:
  explicit NotFalseNode(NodePtr operand) : operand_(std::move(operand)) {}
  Value Run(Frame& frame) const override;

 private:
  NodePtr operand_;
};

class CallNode : public Node {
 public:
  // `overload` is null if the types do not decide which one is called.
  CallNode(const Function& function, const Overload* overload, Nodes args);
  Value Run(Frame& frame) const override;
  bool TakesOneConstant() const { return args_.size() == 1 && args_[0]->Constant() != nullptr; }

 protected:
  // REQUIRES: no error among the arguments.
  virtual Value Call(Arena& arena, std::span<const Value> args) const;

 private:
  // Evaluates until the first error, which it returns; `complete`: all were evaluated.
  const Value* Evaluate(Frame& frame, std::span<Value> values, bool& complete) const;

  const Function& function_;
  const Overload* overload_;
  Nodes args_;
  CostRule cost_;

 protected:
  bool lazy_;  // stops at the first error
};

// A call with a regular expression that is a literal.
class RegexNode final : public CallNode {
 public:
  RegexNode(const Function& function, const Overload* overload, Nodes args,
            std::unique_ptr<const Regex> regex);

 private:
  Value Call(Arena& arena, std::span<const Value> args) const override;
  std::unique_ptr<const Regex> regex_;
  std::string_view name_;
};

// "x in [1, 2]" for a constant list of scalars.
class MemberNode final : public Node {
 public:
  MemberNode(NodePtr operand, std::vector<Value> members);
  Value Run(Frame& frame) const override;

 private:
  NodePtr operand_;
  std::vector<Value> members_;  // in the order of their hashes
};

// optional.or() and optional.orValue().
class OrNode final : public Node {
 public:
  OrNode(bool unwrap, NodePtr left, NodePtr right)
      : unwrap_(unwrap), left_(std::move(left)), right_(std::move(right)) {}
  Value Run(Frame& frame) const override;

 private:
  bool unwrap_;
  NodePtr left_;
  NodePtr right_;
};

class ListNode final : public Node {
 public:
  ListNode(Nodes elements, std::vector<bool> optional)
      : elements_(std::move(elements)), optional_(std::move(optional)) {}
  Value Run(Frame& frame) const override;
  // Without the cost.
  Value Make(Frame& frame) const;
  bool IsConstant() const;

 private:
  Nodes elements_;
  std::vector<bool> optional_;
};

class MapNode final : public Node {
 public:
  // Keys and values by turns.
  MapNode(Nodes entries, std::vector<bool> optional)
      : entries_(std::move(entries)), optional_(std::move(optional)) {}
  Value Run(Frame& frame) const override;
  Value Make(Frame& frame) const;
  bool IsConstant() const;

 private:
  Nodes entries_;
  std::vector<bool> optional_;
};

// A comprehension. The variables are slots; a variable that is not used has no slot of its own.
struct FoldParts {
  size_t accumulator = 0;
  size_t variable = 0;
  size_t second_variable = 0;
  bool two_variables = false;
  NodePtr range;
  NodePtr init;
  NodePtr condition;
  NodePtr step;
  NodePtr result;
};

class FoldNode final : public Node {
 public:
  explicit FoldNode(FoldParts parts) : parts_(std::move(parts)) {}
  Value Run(Frame& frame) const override;

 private:
  void OverList(Frame& frame, const ListValue& list) const;
  void OverMap(Frame& frame, const MapValue& map) const;
  // False at the end of the loop.
  bool Step(Frame& frame) const;
  FoldParts parts_;
};

}  // namespace nos::cel
