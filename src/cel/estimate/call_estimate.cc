#include "cel/estimate/call_estimate.h"

#include <algorithm>

namespace nos::cel {
namespace {

constexpr double kText = 0.1;
constexpr double kRegex = 0.25;
constexpr Range kOne = Range::Exactly(1);
constexpr Range kListCost = Range::Exactly(10);

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsText(const Type& type) { return type.is(TypeKind::kString) || type.is(TypeKind::kBytes); }

uint64_t LiteralOr(const Argument& arg, uint64_t otherwise) {
  if (arg.expr->kind != ExprKind::kLiteral || !arg.expr->literal.is(Kind::kInt)) return otherwise;
  return arg.expr->literal.integer() < 0 ? 0 : arg.expr->literal.natural();
}

CallEstimate ListCall(double factor, Range size) {
  return {size.Times(factor) + kOne + kListCost, size};
}

CallEstimate SortCall(const Argument& keys, std::string_view overload) {
  const bool text = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
  const Range size = keys.SizeOrUnknown();
  return ListCall(text ? 2 + kText : 2, size * size);
}

// cel-go's libraries of lists and sets, by overload.
std::optional<CallEstimate> EstimateListCall(std::string_view overload, const Argument* target,
                                             const std::vector<Argument>& args) {
  if (overload == "list_slice") {
    const Range size = target->SizeOrUnknown();
    return ListCall(1, Range::Exactly(LiteralOr(args[1], size.max) - LiteralOr(args[0], 0)));
  }
  if (overload == "lists_range") {
    return ListCall(1, Range::Exactly(LiteralOr(args[0], kUnbounded)));
  }
  if (overload == "list_reverse") return ListCall(1, target->SizeOrUnknown());
  if (overload.starts_with("list_flatten")) {
    const uint64_t depth = args.empty() ? 1 : LiteralOr(args[0], kUnbounded);
    return ListCall(static_cast<double>(depth), target->SizeOrUnknown());
  }
  if (overload == "list_distinct") {
    const Range size = target->SizeOrUnknown();
    return ListCall(2, size * size);
  }
  if (overload.ends_with("_sortByAssociatedKeys")) return SortCall(args[0], overload);
  if (overload.starts_with("list_") && overload.ends_with("_sort")) {
    return SortCall(*target, overload);
  }
  if (overload.starts_with("list_sets_")) {
    const double factor = overload == "list_sets_equivalent_list" ? 2 : 1;
    const Range product = args[0].SizeOrUnknown() * args[1].SizeOrUnknown();
    return CallEstimate{product.Times(factor) + kOne, std::nullopt};
  }
  return std::nullopt;
}

// The size of an element of a list.
Range ElementSize(const Argument& list) {
  return SizeAt(list.path.Then("@items")).value_or(Range::Unknown());
}

CallEstimate Traversal(std::string_view function, const Argument& target) {
  const Range size = target.SizeOrUnknown();
  if (!target.type().params.empty()) {
    Range element = kOne;
    if (IsText(*target.type().params[0])) element = element + ElementSize(target).Times(kText);
    return {size * element, std::nullopt};
  }
  if (function == "includes") return {size * kOne, std::nullopt};
  return {size.Times(kText), std::nullopt};
}

CallEstimate Replace(const Argument& target, const std::vector<Argument>& args) {
  const Range size = target.SizeOrUnknown();
  const Range old = args[0].SizeOrUnknown();
  const Range with = args[1].SizeOrUnknown();
  Range count;
  Range kept;
  const auto divide = [](uint64_t a, uint64_t b) {
    const double quotient = std::ceil(static_cast<double>(a) / static_cast<double>(b));
    // Go makes this of a number that does not fit.
    if (quotient >= 18446744073709551616.0) return uint64_t{1} << 63;
    return static_cast<uint64_t>(quotient);
  };
  if (old.min == 0) {
    count.max = AddBounded(size.max, 1);
    kept.max = size.max;
  } else if (with.max <= old.min) {
    kept.max = size.max;
  } else {
    count.max = divide(size.max, old.min);
  }
  if (old.max == 0) {
    count.min = AddBounded(size.min, 1);
    kept.min = size.min;
  } else if (old.max <= with.min) {
    kept.min = size.min;
  } else {
    count.min = divide(size.min, old.max);
  }
  return {size.Times(2 * kText), count * with + kept};
}

CallEstimate Split(const Argument& target, const std::vector<Argument>& args) {
  const Range size = target.SizeOrUnknown();
  uint64_t most = size.max;
  if (args.size() > 1 && args[1].expr->kind == ExprKind::kLiteral &&
      args[1].expr->literal.is(Kind::kInt)) {
    most = args[1].expr->literal.natural();
  }
  return {size.Times(2 * kText), Range{0, most}};
}

CallEstimate Join(const Argument& target, const std::vector<Argument>& args) {
  const Range list = target.SizeOrUnknown();
  Range size;
  if (!target.type().params.empty()) size = list * ElementSize(target);
  if (!args.empty()) {
    const Range separators = {list.min > 0 ? list.min - 1 : 0, list.max > 0 ? list.max - 1 : 0};
    size = size + args[0].SizeOrUnknown() * separators;
  }
  return {size.Times(kText), size};
}

CallEstimate Find(const Argument& target, const std::vector<Argument>& args) {
  const Range size = target.SizeOrUnknown();
  return {(size + kOne).Times(kText) * args[0].SizeOrUnknown().Times(kRegex), Range{0, size.max}};
}

CallEstimate Contains(bool network, bool text, const Argument& arg) {
  constexpr Range kAddress = {4, 16};  // bytes
  Range cost = (kAddress + kAddress).Times(kText);
  if (network) cost = cost + kAddress.Times(kText) + kOne;
  if (text) cost = cost + arg.SizeOrUnknown().Times(kText);
  return {cost, std::nullopt};
}

CallEstimate Selector(const Argument& arg) {
  const Range size = arg.SizeOrUnknown();
  return {kListCost + size.Times(kText) + size.Times(0.5).Times(50), std::nullopt};
}

std::optional<CallEstimate> Equality(const Argument& left, const Argument& right) {
  const Type& type = left.type();
  if (type.name != right.type().name) return std::nullopt;
  if (&type == &types::kIp || &type == &types::kCidr || &type == &types::kQuantity ||
      &type == &types::kSemver || type.name.starts_with("kubernetes.authorization.")) {
    return CallEstimate{kOne, std::nullopt};
  }
  if (&type == &types::kFormat) return CallEstimate{Range{1, 64}.Times(kText), std::nullopt};
  if (&type == &types::kUrl) {
    const uint64_t size = right.size ? right.size->max : 1;
    return CallEstimate{Range{1, size}.Times(kText), std::nullopt};
  }
  return std::nullopt;
}

// Kubernetes' rules for functions of strings and lists.
std::optional<CallEstimate> EstimateTextCall(std::string_view function, const Argument* target,
                                             const std::vector<Argument>& args) {
  if (target == nullptr) return std::nullopt;
  if (IsOneOf(function, {"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"})) {
    return Traversal(function, *target);
  }
  if (IsOneOf(function, {"lowerAscii", "upperAscii", "substring", "trim"})) {
    const Range size = target->SizeOrUnknown();
    return CallEstimate{size.Times(kText), size};
  }
  if (function == "replace") return Replace(*target, args);
  if (function == "split") return Split(*target, args);
  if (function == "join") return Join(*target, args);
  if (function == "find" || function == "findAll") return Find(*target, args);
  return std::nullopt;
}

// Its rules for the types that it adds.
std::optional<CallEstimate> EstimateObjectCall(std::string_view function, std::string_view overload,
                                               const std::vector<Argument>& args) {
  const auto text = [&](double factor) {
    return CallEstimate{args[0].SizeOrUnknown().Times(factor), std::nullopt};
  };
  if (function == "url") return CallEstimate{text(kText).cost, args[0].SizeOrUnknown()};
  if (IsOneOf(function,
              {"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"}) ||
      (function == "ip" && overload != "cidr_ip" && !args.empty())) {
    return text(kText);
  }
  if (function == "ip.isCanonical") return text(2 * kText);
  if (function == "validate") {
    return CallEstimate{args[0].SizeOrUnknown().Times(kText).Times(128 * kRegex), std::nullopt};
  }
  if (function == "containsIP") {
    return Contains(false, overload == "cidr_contains_ip_string", args[0]);
  }
  if (function == "containsCIDR") {
    return Contains(true, overload == "cidr_contains_cidr_string", args[0]);
  }
  if (function == "check") return CallEstimate{Range::Exactly(350'000), std::nullopt};
  if (function == "fieldSelector" || function == "labelSelector") return Selector(args[0]);
  return std::nullopt;
}

}  // namespace

std::optional<CallEstimate> EstimateLibraryCall(std::string_view function,
                                                std::string_view overload, const Argument* target,
                                                const std::vector<Argument>& args) {
  if (auto estimate = EstimateListCall(overload, target, args)) return estimate;
  if (auto estimate = EstimateTextCall(function, target, args)) return estimate;
  if (auto estimate = EstimateObjectCall(function, overload, args)) return estimate;
  if (function == "_==_") return Equality(args[0], args[1]);
  return std::nullopt;  // one, like all that have no rule
}

}  // namespace nos::cel
