#include "cel/estimate/cost.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "cel/estimate/call_estimate.h"
#include "cel/library/function.h"
#include "cel/values/equality.h"

namespace nos::cel {
namespace {

constexpr double kText = 0.1;
constexpr double kRegex = 0.25;
constexpr Range kOne = Range::Exactly(1);
constexpr Range kListCost = Range::Exactly(10);
constexpr Range kMapCost = Range::Exactly(30);

// The sizes of keys and values of a list or map that the expression makes.
struct EntrySize {
  bool list = false;
  Range key;
  Range value;
};

struct Local {
  std::string_view name;
  Path path;
  std::optional<Range> size;
  std::optional<EntrySize> entries;
};

bool IsScalar(const Type& type) {
  switch (type.kind) {
    case TypeKind::kBool:
    case TypeKind::kDouble:
    case TypeKind::kDuration:
    case TypeKind::kInt:
    case TypeKind::kTimestamp:
    case TypeKind::kUint:
      return true;
    default:
      return type.IsOptional() && !type.params.empty() && IsScalar(*type.params[0]);
  }
}

std::optional<Range> LiteralSize(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kLiteral:
      return Range::Exactly(SizeOf(expr.literal));
    case ExprKind::kList:
      return Range::Exactly(expr.args.size());
    case ExprKind::kMap:
      return Range::Exactly(expr.args.size() / 2);
    default:
      return std::nullopt;
  }
}

// cel.bind and its like: a comprehension over nothing.
bool IsBind(const Comprehension& parts) {
  return parts.range->kind == ExprKind::kList && parts.range->args.empty() &&
         parts.condition->kind == ExprKind::kLiteral && parts.condition->literal.IsFalse();
}

class Estimator {
 public:
  Range Cost(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kLiteral:
        return {};
      case ExprKind::kIdent:
        return IdentCost(expr);
      case ExprKind::kSelect:
        return SelectCost(expr);
      case ExprKind::kCall:
        return CallCost(expr);
      case ExprKind::kList:
        return ListCost(expr);
      case ExprKind::kMap:
        return MapCost(expr);
      case ExprKind::kStruct:
        return {};
      case ExprKind::kComprehension:
        return IsBind(*expr.comprehension) ? BindCost(expr) : FoldCost(expr);
    }
    return {};
  }

 private:
  // The knowledge of an expression so far.
  struct Known {
    Path path;
    std::optional<Range> size;
    std::optional<EntrySize> entries;
  };

  const Local* FindLocal(const Expr& expr) const {
    if (expr.kind != ExprKind::kIdent || expr.global) return nullptr;
    const auto found = std::find_if(locals_.rbegin(), locals_.rend(),
                                    [&](const Local& local) { return local.name == expr.name; });
    return found == locals_.rend() ? nullptr : &*found;
  }

  Path PathOf(const Expr& expr) {
    if (const Local* const local = FindLocal(expr)) return local->path;
    return known_[&expr].path;
  }

  std::optional<Range> SizeOfExpr(const Expr& expr) {
    Known& known = known_[&expr];
    if (known.size) return known.size;
    if (const auto size = LiteralSize(expr)) return size;
    if (const auto size = SizeAt(PathOf(expr))) {
      known_[&expr].size = size;
      return size;
    }
    if (expr.type != nullptr && IsScalar(*expr.type)) return Range::Exactly(1);
    if (const Local* const local = FindLocal(expr)) return local->size;
    return std::nullopt;
  }

  Range SizeOrUnknown(const Expr& expr) { return SizeOfExpr(expr).value_or(Range::Unknown()); }

  std::optional<EntrySize> EntriesOf(const Expr& expr) {
    if (const auto& entries = known_[&expr].entries) return entries;
    if (const Local* const local = FindLocal(expr)) return local->entries;
    return std::nullopt;
  }

  void SetSize(const Expr& expr, std::optional<Range> size) {
    if (size) known_[&expr].size = size;
  }
  void SetEntries(const Expr& expr, const std::optional<EntrySize>& entries) {
    if (entries) known_[&expr].entries = entries;
  }
  void CopySizes(const Expr& to, const Expr& from) {
    SetSize(to, SizeOfExpr(from));
    SetEntries(to, EntriesOf(from));
  }

  Range IdentCost(const Expr& expr) {
    const Local* const local = FindLocal(expr);
    // A global name beside a variable of the same name is unknown to upstream's estimate.
    if (local != nullptr || !expr.global) {
      known_[&expr].path = local != nullptr ? local->path : Path(expr.name);
    }
    return kOne;
  }

  Range SelectCost(const Expr& expr) {
    const Range operand = Cost(*expr.target);
    if (expr.test_only) return operand;
    known_[&expr].path = PathOf(*expr.target).Then(expr.name);
    switch (expr.target->type->kind) {
      case TypeKind::kMap:
      case TypeKind::kStruct:
        return operand + kOne;
      default:
        return operand;
    }
  }

  Argument MakeArgument(const Expr& expr) { return {&expr, SizeOfExpr(expr), PathOf(expr)}; }

  Range CallCost(const Expr& expr) {
    if (expr.name == "dyn") {
      const Range cost = Cost(*expr.args[0]) + kOne;
      CopySizes(expr, *expr.args[0]);
      return cost;
    }
    std::vector<Range> costs;
    std::vector<Argument> args;
    for (const Expr* arg : expr.args) {
      costs.push_back(Cost(*arg));
      args.push_back(MakeArgument(*arg));
    }
    Range sum;
    Argument target;
    if (expr.target != nullptr) {
      sum = Cost(*expr.target);
      target = MakeArgument(*expr.target);
    }
    Range cost = {kUnbounded, 0};
    std::optional<Range> size;
    for (const Overload* overload : expr.overloads) {
      const CallEstimate estimate =
          OverloadCost(expr, overload->id, expr.target == nullptr ? nullptr : &target, args, costs);
      cost = cost.Union(estimate.cost);
      if (estimate.size) size = size ? size->Union(*estimate.size) : *estimate.size;
      if (overload->id == "index_list" || overload->id == "index_map") {
        const auto entries = EntriesOf(*expr.args[0]);
        size = entries ? std::optional(entries->value) : std::nullopt;
        known_[&expr].path =
            PathOf(*expr.args[0]).Then(overload->id == "index_list" ? "@items" : "@values");
      }
      if (!size) size = SizeOfExpr(expr);
    }
    SetSize(expr, size);
    return sum + cost;
  }

  // With the costs of the arguments.
  CallEstimate OverloadCost(const Expr& expr, std::string_view overload, const Argument* target,
                            const std::vector<Argument>& args, const std::vector<Range>& costs) {
    Range sum;
    for (const Range& cost : costs) sum = sum + cost;
    if (auto estimate = EstimateLibraryCall(expr.name, overload, target, args)) {
      return {estimate->cost + sum, estimate->size};
    }
    if (overload == "logical_or" || overload == "logical_and") {
      return {{costs[0].min, (costs[0] + costs[1]).max}, std::nullopt};
    }
    if (overload == "conditional") {
      SetEntries(expr, UnionOf(EntriesOf(*expr.args[1]), EntriesOf(*expr.args[2])));
      return {costs[0] + costs[1].Union(costs[2]),
              args[1].SizeOrUnknown().Union(args[2].SizeOrUnknown())};
    }
    if (overload == "add_string" || overload == "add_bytes" || overload == "add_list") {
      const Range size = args[0].SizeOrUnknown() + args[1].SizeOrUnknown();
      SetEntries(expr, UnionOf(EntriesOf(*expr.args[0]), EntriesOf(*expr.args[1])));
      return {(overload == "add_list" ? kOne : size.Times(kText)) + sum, size};
    }
    CallEstimate estimate = StandardCost(overload, target, args);
    estimate.cost = estimate.cost + sum;
    return estimate;
  }

  static std::optional<EntrySize> UnionOf(const std::optional<EntrySize>& a,
                                          const std::optional<EntrySize>& b) {
    if (!a || !b) return std::nullopt;
    return EntrySize{a->list, a->key.Union(b->key), a->value.Union(b->value)};
  }

  static CallEstimate StandardCost(std::string_view overload, const Argument* target,
                                   const std::vector<Argument>& args) {
    const auto size = [&](size_t i) { return args[i].SizeOrUnknown(); };
    if (overload == "string_format") return {target->SizeOrUnknown().Times(kText), std::nullopt};
    if (overload == "string_to_bytes") {
      return {size(0).Times(kText), Range{size(0).min, size(0).max * 4}};
    }
    if (overload == "bytes_to_string") {
      return {size(0).Times(kText), Range{size(0).min / 4, size(0).max}};
    }
    if (overload == "strings_quote") {
      return {size(0).Times(kText), Range{size(0).min + 2, size(0).max * 2 + 2}};
    }
    if (overload == "starts_with_string" || overload == "ends_with_string") {
      return {size(0).Times(kText), std::nullopt};
    }
    if (overload == "in_list") return {size(1).Times(1), std::nullopt};
    if (overload == "matches" || overload == "matches_string") {
      const Range text = target != nullptr ? target->SizeOrUnknown() : size(0);
      const Range pattern = args.back().SizeOrUnknown();
      return {(text + kOne).Times(kText) * pattern.Times(kRegex), std::nullopt};
    }
    if (overload == "contains_string") {
      return {target->SizeOrUnknown().Times(kText) * size(0).Times(kText), std::nullopt};
    }
    const bool text_order = (overload.starts_with("less_") || overload.starts_with("greater_")) &&
                            (overload.ends_with("_string") || overload.ends_with("_bytes"));
    if (text_order || overload == "equals" || overload == "not_equals") {
      const uint64_t most = std::min(size(0).max, size(1).max);
      return {Range{most > 0 ? uint64_t{1} : 0, most}.Times(kText), std::nullopt};
    }
    return {kOne, std::nullopt};
  }

  Range ListCost(const Expr& expr) {
    Range sum;
    Range size = {expr.args.empty() ? 0 : kUnbounded, 0};
    for (const Expr* element : expr.args) {
      sum = sum + Cost(*element);
      size = size.Union(SizeOrUnknown(*element));
    }
    SetEntries(expr, EntrySize{true, kOne, size});
    return sum + kListCost;
  }

  Range MapCost(const Expr& expr) {
    Range sum;
    Range keys = {expr.args.empty() ? 0 : kUnbounded, 0};
    Range values = keys;
    for (size_t i = 0; i < expr.args.size(); i += 2) {
      sum = sum + Cost(*expr.args[i]) + Cost(*expr.args[i + 1]);
      keys = keys.Union(SizeOrUnknown(*expr.args[i]));
      values = values.Union(SizeOrUnknown(*expr.args[i + 1]));
    }
    SetEntries(expr, EntrySize{false, keys, values});
    return sum + kMapCost;
  }

  // The variables of a comprehension over `range`.
  void PushVariables(const Comprehension& parts) {
    const Expr& range = *parts.range;
    const auto entries = EntriesOf(range);
    const bool list = entries ? entries->list : range.type->is(TypeKind::kList);
    const Path path = PathOf(range);
    const auto key = entries ? std::optional(entries->key) : std::nullopt;
    const auto value = entries ? std::optional(entries->value) : std::nullopt;
    const auto keys = [&] { return path.Then(list ? "@indices" : "@keys"); };
    const auto values = [&] { return path.Then(list ? "@items" : "@values"); };
    if (!parts.second_variable.empty()) {
      locals_.push_back({parts.variable, keys(), key, std::nullopt});
      locals_.push_back({parts.second_variable, values(), value, std::nullopt});
    } else if (list) {
      locals_.push_back({parts.variable, values(), value, std::nullopt});
    } else {
      locals_.push_back({parts.variable, keys(), key, std::nullopt});
    }
  }

  void PushLocal(std::string_view name, const Expr& value) {
    const Path path = PathOf(value);
    const auto entries = EntriesOf(value);
    locals_.push_back({name, path, SizeOfExpr(value), entries});
  }

  Range FoldCost(const Expr& expr) {
    const Comprehension& parts = *expr.comprehension;
    Range sum = Cost(*parts.range);
    sum = sum + Cost(*parts.init);
    const size_t outer = locals_.size();
    PushLocal(parts.accumulator, *parts.init);
    PushVariables(parts);
    const Range loop = Cost(*parts.condition);
    const Range step = Cost(*parts.step);
    locals_.resize(outer + 1);
    sum = sum + Cost(*parts.result);
    locals_.resize(outer);
    const Range count = SizeOrUnknown(*parts.range);
    sum = sum + count * (step + loop);
    switch (parts.init->kind) {
      case ExprKind::kLiteral:
        SetSize(expr, SizeOfExpr(*parts.init));
        break;
      case ExprKind::kList:
      case ExprKind::kMap:
        SetSize(expr, count);
        SetEntries(expr, EntriesOf(*parts.step));
        break;
      default:
        break;
    }
    return sum;
  }

  Range BindCost(const Expr& expr) {
    const Comprehension& parts = *expr.comprehension;
    Range sum = Cost(*parts.range);
    sum = sum + Cost(*parts.init);
    PushLocal(parts.accumulator, *parts.init);
    sum = sum + Cost(*parts.result);
    locals_.pop_back();
    CopySizes(expr, *parts.result);
    return sum;
  }

  std::unordered_map<const Expr*, Known> known_;
  std::vector<Local> locals_;
};

}  // namespace

uint64_t EstimateCost(const Ast& ast) { return Estimator().Cost(*ast.root).max; }

}  // namespace nos::cel
