#include "cel/eval/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cel/eval/attribute.h"
#include "cel/eval/device_maps.h"
#include "cel/types/static_type.h"
#include "cel/values/equality.h"
#include "cel/values/list.h"
#include "cel/values/numbers.h"
#include "cel/values/step_limit.h"

namespace nos::cel {
namespace {

struct PlanError {
  std::string message;
};

// Functions that are computed when their argument is a constant.
bool IsConversion(std::string_view name) {
  constexpr std::array kConversions = {"bool", "bytes",  "double",    "duration", "dyn",
                                       "int",  "string", "timestamp", "type",     "uint"};
  return std::find(kConversions.begin(), kConversions.end(), name) != kConversions.end();
}

bool IsScalar(const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kDouble:
    case Kind::kString:
      return true;
    default:
      return false;
  }
}

// The numbers of other types that upstream's table has for a member: for an int, the double nearest
// to it, even if it is not equal.
void AddMember(const Value& value, std::vector<Value>& members) {
  members.push_back(value);
  switch (value.kind()) {
    case Kind::kDouble:
      if (const auto whole = CheckedInt(value.number())) {
        if (Equals(Value::Int(*whole), value).IsTrue()) members.push_back(Value::Int(*whole));
      }
      if (const auto natural = CheckedUint(value.number())) {
        if (Equals(Value::Uint(*natural), value).IsTrue()) members.push_back(Value::Uint(*natural));
      }
      break;
    case Kind::kInt:
      members.push_back(Value::Double(static_cast<double>(value.integer())));
      if (value.integer() >= 0) members.push_back(Value::Uint(value.natural()));
      break;
    case Kind::kUint:
      members.push_back(Value::Double(static_cast<double>(value.natural())));
      if (value.integer() >= 0) members.push_back(Value::Int(value.integer()));
      break;
    default:
      break;
  }
}

}  // namespace

class Planner {
 public:
  explicit Planner(Plan& plan)
      : plan_(plan),
        device_({}, device_error_),
        frame_(plan.constants_, device_, {}, ~uint64_t{0}, nullptr) {}

  void Run() {
    plan_.root_ = Visit(*plan_.ast_->root);
    plan_.slot_count_ = slot_count_;
  }

 private:
  using MutableNode = std::unique_ptr<Node>;

  MutableNode Visit(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kLiteral:
        return std::make_unique<ConstantNode>(expr.literal);
      case ExprKind::kIdent:
        return VisitIdent(expr);
      case ExprKind::kSelect:
        return VisitSelect(expr);
      case ExprKind::kList:
        return VisitList(expr);
      case ExprKind::kMap:
        return VisitMap(expr);
      case ExprKind::kComprehension:
        return VisitComprehension(expr);
      default:
        return VisitCall(expr);
    }
  }

  MutableNode VisitIdent(const Expr& expr) {
    // Upstream looks for the type of that name even if the name is that of a variable.
    if (expr.type->is(TypeKind::kType)) {
      const Type* const type = FindNamedType(expr.name);
      if (type == nullptr) throw PlanError{fmt::format("undefined type: {}", expr.name)};
      return std::make_unique<ConstantNode>(Value::Type(type->name));
    }
    const auto found = std::find_if(variables_.rbegin(), variables_.rend(),
                                    [&](const auto& v) { return v.first == expr.name; });
    const bool local = !expr.global && found != variables_.rend();
    return std::make_unique<AttributeNode>(local ? Attribute::Variable(found->second)
                                                 : Attribute::Device());
  }

  // The operand as something that qualifiers can be added to.
  std::unique_ptr<AttributeNode> AsAttribute(MutableNode node) {
    if (node->AsAttribute() != nullptr) {
      return std::unique_ptr<AttributeNode>(node.release()->AsAttribute());
    }
    return std::make_unique<AttributeNode>(Attribute::Of(std::move(node)));
  }

  MutableNode VisitSelect(const Expr& expr) {
    auto node = AsAttribute(Visit(*expr.target));
    node->Add({Value::String(expr.name), nullptr, false, expr.test_only});
    if (expr.test_only) node->TestOnly();
    return node;
  }

  MutableNode VisitIndex(const Expr& expr, bool optional) {
    auto node = AsAttribute(Visit(*expr.args[0]));
    MutableNode index = Visit(*expr.args[1]);
    Qualifier qualifier;
    qualifier.optional = optional;
    if (const Value* const constant = index->Constant()) {
      if (!IsScalar(*constant)) throw PlanError{"invalid type of an index"};
      qualifier.constant = *constant;
    } else {
      qualifier.dynamic = AsAttribute(std::move(index))->attribute();
    }
    node->Add(qualifier);
    return node;
  }

  MutableNode VisitCall(const Expr& expr) {
    const std::string_view name = expr.name;
    if (name == "_&&_" || name == "_||_") {
      NodePtr left = Visit(*expr.args[0]);
      return std::make_unique<LogicNode>(name == "_||_", std::move(left), Visit(*expr.args[1]));
    }
    if (name == "_==_" || name == "_!=_") {
      NodePtr left = Visit(*expr.args[0]);
      return std::make_unique<EqualityNode>(name == "_==_", std::move(left), Visit(*expr.args[1]));
    }
    if (name == "_?_:_") return VisitConditional(expr);
    if (name == "_[_]") return VisitIndex(expr, false);
    if (name == "_[?_]" || name == "_?._") return VisitIndex(expr, true);
    if (name == "@not_strictly_false") return std::make_unique<NotFalseNode>(Visit(*expr.args[0]));
    if ((name == "or" || name == "orValue") && expr.target != nullptr) {
      NodePtr left = Visit(*expr.target);
      return std::make_unique<OrNode>(name == "orValue", std::move(left), Visit(*expr.args[0]));
    }
    return VisitFunction(expr);
  }

  MutableNode VisitConditional(const Expr& expr) {
    NodePtr condition = Visit(*expr.args[0]);
    auto yes = AsAttribute(Visit(*expr.args[1]))->attribute();
    auto no = AsAttribute(Visit(*expr.args[2]))->attribute();
    return std::make_unique<AttributeNode>(
        Attribute::Conditional(std::move(condition), std::move(yes), std::move(no)));
  }

  MutableNode VisitFunction(const Expr& expr) {
    const Overload* const overload = expr.overloads.size() == 1 ? expr.overloads[0] : nullptr;
    Nodes args;
    if (expr.target != nullptr) args.push_back(Visit(*expr.target));
    for (const Expr* arg : expr.args) args.push_back(Visit(*arg));
    if (overload != nullptr && overload->id == "in_list" && args[1]->Constant() != nullptr) {
      if (MutableNode member = PlanMember(args)) return member;
    }
    if (auto regex = ConstantRegex(expr.name, args)) {
      return std::make_unique<RegexNode>(*expr.function, overload, std::move(args),
                                         std::move(regex));
    }
    auto call = std::make_unique<CallNode>(*expr.function, overload, std::move(args));
    if (!IsConversion(expr.name) || !call->TakesOneConstant()) return call;
    const Value value = call->Run(frame_);
    if (value.IsError()) throw PlanError{std::string(value.text())};
    return std::make_unique<ConstantNode>(value);
  }

  // Null if the list has elements that are no scalars.
  MutableNode PlanMember(Nodes& args) {
    const ListValue& list = args[1]->Constant()->list();
    if (list.size() == 0) return std::make_unique<ConstantNode>(Value::Bool(false));
    std::vector<Value> members;
    for (uint64_t i = 0; i < list.size(); ++i) {
      const Value element = list.At(i);
      if (!IsScalar(element)) return nullptr;
      AddMember(element, members);
    }
    return std::make_unique<MemberNode>(std::move(args[0]), std::move(members));
  }

  static std::unique_ptr<const Regex> ConstantRegex(std::string_view name, const Nodes& args) {
    if ((name != "matches" && name != "find" && name != "findAll") || args.size() < 2) {
      return nullptr;
    }
    const Value* const pattern = args[1]->Constant();
    if (pattern == nullptr || !pattern->is(Kind::kString)) return nullptr;
    auto regex = Regex::Compile(pattern->text());
    if (regex == nullptr) {
      throw PlanError{fmt::format("invalid regular expression: {}", pattern->text())};
    }
    return regex;
  }

  template <typename Literal>
  MutableNode Fold(std::unique_ptr<Literal> literal) {
    if (!literal->IsConstant()) return literal;
    const Value value = literal->Make(frame_);
    if (value.IsError()) throw PlanError{std::string(value.text())};
    return std::make_unique<ConstantNode>(value);
  }

  Nodes VisitAll(const std::vector<Expr*>& exprs) {
    Nodes nodes;
    for (const Expr* expr : exprs) nodes.push_back(Visit(*expr));
    return nodes;
  }

  MutableNode VisitList(const Expr& expr) {
    return Fold(std::make_unique<ListNode>(VisitAll(expr.args), expr.optional));
  }

  MutableNode VisitMap(const Expr& expr) {
    return Fold(std::make_unique<MapNode>(VisitAll(expr.args), expr.optional));
  }

  MutableNode VisitComprehension(const Expr& expr) {
    const Comprehension& source = *expr.comprehension;
    FoldParts parts;
    parts.init = Visit(*source.init);
    parts.range = Visit(*source.range);
    const size_t outer = variables_.size();
    const auto declare = [&](const std::string& name) {
      variables_.emplace_back(name, slot_count_);
      return slot_count_++;
    };
    parts.accumulator = declare(source.accumulator);
    parts.variable = declare(source.variable);
    parts.two_variables = !source.second_variable.empty();
    if (parts.two_variables) parts.second_variable = declare(source.second_variable);
    parts.condition = Visit(*source.condition);
    parts.step = Visit(*source.step);
    variables_.resize(outer + 1);
    parts.result = Visit(*source.result);
    variables_.resize(outer);
    return std::make_unique<FoldNode>(std::move(parts));
  }

  Plan& plan_;
  std::string device_error_;
  DeviceMaps device_;  // stands in while constants are computed; they do not read it
  Frame frame_;
  std::vector<std::pair<std::string, size_t>> variables_;
  size_t slot_count_ = 0;
};

Result<std::unique_ptr<const Plan>> Plan::Make(std::unique_ptr<Ast> ast) {
  auto plan = std::make_unique<Plan>();
  plan->ast_ = std::move(ast);
  try {
    StepLimit::Reset();
    Planner(*plan).Run();
  } catch (const PlanError& error) {
    return Invalid(error.message);
  } catch (const Cancelled& cancelled) {
    return Invalid(cancelled.what());
  }
  return std::unique_ptr<const Plan>(std::move(plan));
}

}  // namespace nos::cel
