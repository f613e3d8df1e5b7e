// Variables, conditionals, and selections and indexes behind them, which upstream resolves
// together.
#pragma once

#include <memory>
#include <vector>

#include "cel/eval/node.h"

namespace nos::cel {

class Attribute;

// One ".name", "[index]", ".?name" or "[?index]".
struct Qualifier {
  Value constant;
  std::shared_ptr<const Attribute> dynamic;  // an index that is known only at run time
  bool optional = false;
  bool test_only = false;  // has()
};

class Attribute {
 public:
  static std::shared_ptr<Attribute> Device();
  static std::shared_ptr<Attribute> Variable(size_t slot);
  static std::shared_ptr<Attribute> Of(NodePtr operand);
  static std::shared_ptr<Attribute> Conditional(NodePtr condition, std::shared_ptr<Attribute> yes,
                                                std::shared_ptr<Attribute> no);

  bool conditional() const { return condition_ != nullptr; }
  // To both branches of a conditional.
  void Add(const Qualifier& qualifier);
  Value Resolve(Frame& frame) const;

 private:
  enum class Root { kDevice, kVariable, kOperand, kConditional };
  Value ResolveRoot(Frame& frame) const;
  static Value Read(Frame& frame, size_t slot);

  Root root_ = Root::kDevice;
  size_t slot_ = 0;
  NodePtr operand_;
  NodePtr condition_;
  std::shared_ptr<Attribute> yes_;
  std::shared_ptr<Attribute> no_;
  std::vector<Qualifier> qualifiers_;
};

class AttributeNode final : public Node {
 public:
  explicit AttributeNode(std::shared_ptr<Attribute> attribute) : attribute_(std::move(attribute)) {}
  Value Run(Frame& frame) const override;
  AttributeNode* AsAttribute() override { return this; }

  const std::shared_ptr<Attribute>& attribute() const { return attribute_; }
  void Add(const Qualifier& qualifier) { attribute_->Add(qualifier); }
  // Makes the last qualifier the one that has() tests.
  void TestOnly() { test_only_ = true; }

 private:
  std::shared_ptr<Attribute> attribute_;
  bool test_only_ = false;
};

}  // namespace nos::cel
