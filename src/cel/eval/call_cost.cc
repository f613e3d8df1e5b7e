#include "cel/eval/call_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cel/values/cancelled.h"
#include "cel/values/equality.h"
#include "cel/values/list.h"
#include "cel/values/map.h"
#include "cel/values/named_format.h"
#include "cel/values/step_limit.h"

namespace nos::cel {
namespace {

constexpr double kTextFactor = 0.1;
constexpr double kRegexFactor = 0.25;
constexpr uint64_t kListCost = 10;

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// Rules that cel-go's libraries set for an overload come first.
bool RuleOfOverload(std::string_view overload, CostRule& rule) {
  if (IsOneOf(overload, {"list_slice", "lists_range", "list_reverse"})) {
    rule = CostRule::kListOutput;
  } else if (StartsWithAny(overload, {"list_flatten"})) {
    rule = CostRule::kFlatten;
  } else if (overload == "list_distinct" ||
             (overload.starts_with("list_") && overload.ends_with("_sort"))) {
    rule = CostRule::kCompareAll;
  } else if (overload.ends_with("_sortByAssociatedKeys")) {
    rule = CostRule::kCompareAllKeys;
  } else if (IsOneOf(overload, {"list_sets_contains_list", "list_sets_intersects_list"})) {
    rule = CostRule::kSets;
  } else if (overload == "list_sets_equivalent_list") {
    rule = CostRule::kSetsTwice;
  } else {
    return false;
  }
  return true;
}

// Then those that Kubernetes sets for the name of a function.
bool RuleOfFunction(std::string_view function, std::string_view overload, CostRule& rule) {
  if (IsOneOf(function, {"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"})) {
    rule = CostRule::kTraversal;
  } else if (IsOneOf(function,
                     {"url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP",
                      "isCIDR", "quantity", "isQuantity", "semver", "isSemver"})) {
    rule = CostRule::kText;
  } else if (IsOneOf(function, {"replace", "split", "ip.isCanonical"})) {
    rule = CostRule::kTextTwice;
  } else if (function == "join") {
    rule = CostRule::kResultTwice;
  } else if (IsOneOf(function, {"find", "findAll"})) {
    rule = CostRule::kFind;
  } else if (function == "ip") {
    rule = overload == "cidr_ip" ? CostRule::kOne : CostRule::kText;
  } else if (function == "check") {
    rule = CostRule::kCheck;
  } else if (IsOneOf(function, {"fieldSelector", "labelSelector"})) {
    rule = CostRule::kSelector;
  } else if (function == "containsIP") {
    rule =
        overload == "cidr_contains_ip_string" ? CostRule::kContainsIpText : CostRule::kContainsIp;
  } else if (function == "containsCIDR") {
    rule = overload == "cidr_contains_cidr_string" ? CostRule::kContainsCidrText
                                                   : CostRule::kContainsCidr;
  } else if (function == "validate") {
    rule = CostRule::kValidate;
  } else {
    return false;
  }
  return true;
}

uint64_t Ceil(double value) { return static_cast<uint64_t>(std::ceil(value)); }

// Kubernetes' rules do not look into optional values.
uint64_t Size(const Value& value) { return static_cast<uint64_t>(SizeOf(value)); }

uint64_t DeepSize(const Value& value) {
  if (value.is(Kind::kOptional) && value.optional() != nullptr) return DeepSize(*value.optional());
  return Size(value);
}

uint64_t TextCost(uint64_t size) { return Ceil(static_cast<double>(size) * kTextFactor); }

uint64_t AddUp(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

uint64_t ListCost(double factor, uint64_t size) {
  if (factor < 0) factor = 1;
  const double cost = static_cast<double>(size) * factor;
  // Go's conversion of what does not fit; larger than every limit anyway.
  if (cost >= 18446744073709551616.0) return uint64_t{1} << 63;
  return AddUp(static_cast<uint64_t>(cost), 1 + kListCost);
}

uint64_t CompareAll(const Value& list) {
  // Upstream's trackers panic where an argument is an error.
  if (!list.is(Kind::kList))
    throw Cancelled(Cancelled::Cause::kInternal, "internal error: not a list");
  if (list.list().size() == 0) return ListCost(2, 0);
  const uint64_t size = list.list().size();
  const Value first = list.list().At(0);
  const bool text = first.is(Kind::kString) || first.is(Kind::kBytes);
  uint64_t square = 0;
  if (__builtin_mul_overflow(size, size, &square)) square = std::numeric_limits<uint64_t>::max();
  return ListCost(text ? 2 + kTextFactor : 2, square);
}

uint64_t Traversal(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kBytes:
      return static_cast<uint64_t>(static_cast<double>(value.text().size()) * kTextFactor);
    case Kind::kList: {
      uint64_t cost = 0;
      const ListValue& list = value.list();
      StepLimit::Spend(list.size());
      for (uint64_t i = 0; i < list.size(); ++i) cost += Traversal(list.At(i));
      return cost;
    }
    case Kind::kMap: {
      uint64_t cost = 0;
      const MapValue& map = value.map();
      StepLimit::Spend(map.size());
      for (uint64_t i = 0; i < map.size(); ++i) {
        const MapEntry entry = map.At(i);
        cost += Traversal(entry.key) + Traversal(entry.value);
      }
      return cost;
    }
    default:
      return 1;
  }
}

uint64_t RegexCost(uint64_t text, uint64_t pattern) {
  return Ceil((1.0 + static_cast<double>(text)) * kTextFactor) *
         Ceil(static_cast<double>(pattern) * kRegexFactor);
}

uint64_t SelectorCost(uint64_t size) {
  const auto length = static_cast<double>(size);
  return kListCost + Ceil(length * kTextFactor) + Ceil(std::ceil(length * 0.5) * 50);
}

uint64_t Smaller(std::span<const Value> args) {
  return TextCost(std::min(DeepSize(args[0]), DeepSize(args[1])));
}

uint64_t EqualsCost(std::span<const Value> args) {
  switch (args[0].kind()) {
    case Kind::kQuantity:
    case Kind::kIp:
    case Kind::kCidr:
    case Kind::kFormat:
    case Kind::kUrl:
    case Kind::kSemver:
      return 1;
    default:
      return Smaller(args);
  }
}

}  // namespace

CostRule CostRuleOf(std::string_view function, std::string_view overload) {
  CostRule rule = CostRule::kOne;
  if (RuleOfOverload(overload, rule) || RuleOfFunction(function, overload, rule)) return rule;
  if (function == "_==_") return CostRule::kEquals;
  if (IsOneOf(overload, {"starts_with_string", "ends_with_string"})) return CostRule::kTextOfSecond;
  if (IsOneOf(overload, {"string_to_bytes", "bytes_to_string", "strings_quote", "string_format"})) {
    return CostRule::kText;
  }
  if (overload == "in_list") return CostRule::kInList;
  if (overload == "not_equals" ||
      (StartsWithAny(overload, {"less_", "greater_"}) &&
       (overload.ends_with("_string") || overload.ends_with("_bytes")))) {
    return CostRule::kNotEquals;
  }
  if (IsOneOf(overload, {"add_string", "add_bytes"})) return CostRule::kConcatenation;
  if (IsOneOf(overload, {"matches", "matches_string"})) return CostRule::kRegex;
  if (overload == "contains_string") return CostRule::kContains;
  return CostRule::kOne;
}

uint64_t CallCost(CostRule rule, std::span<const Value> args, const Value& result) {
  switch (rule) {
    case CostRule::kOne:
      return 1;
    case CostRule::kListOutput:
      return ListCost(1, Size(result));
    case CostRule::kFlatten: {
      if (args.size() == 1) return ListCost(1, Size(args[0]));
      if (!args[1].is(Kind::kInt))
        throw Cancelled(Cancelled::Cause::kInternal, "internal error: not an int");
      return ListCost(static_cast<double>(args[1].integer()), Size(args[0]));
    }
    case CostRule::kCompareAll:
      return CompareAll(args[0]);
    case CostRule::kCompareAllKeys:
      return CompareAll(args[1]);
    case CostRule::kSets:
    case CostRule::kSetsTwice:
      return AddUp(1, Size(args[0]) * Size(args[1]) * (rule == CostRule::kSets ? 1 : 2));
    case CostRule::kTraversal:
      return args.empty() ? 0 : Traversal(args[0]);
    case CostRule::kText:
      return TextCost(DeepSize(args[0]));
    case CostRule::kTextTwice:
      return Ceil(static_cast<double>(Size(args[0])) * 2 * kTextFactor);
    case CostRule::kResultTwice:
      return Ceil(static_cast<double>(Size(result)) * 2 * kTextFactor);
    case CostRule::kRegex:
      return RegexCost(DeepSize(args[0]), DeepSize(args[1]));
    case CostRule::kFind:
      return RegexCost(Size(args[0]), Size(args[1]));
    case CostRule::kCheck:
      return 350'000;
    case CostRule::kSelector:
      return SelectorCost(Size(args[1]));
    case CostRule::kContainsIp:
    case CostRule::kContainsIpText:
      return TextCost(Size(args[0]) * 2) +
             (rule == CostRule::kContainsIpText ? TextCost(Size(args[1])) : 0);
    case CostRule::kContainsCidr:
    case CostRule::kContainsCidrText:
      return TextCost(Size(args[0]) * 2) + TextCost(Size(args[0])) + 1 +
             (rule == CostRule::kContainsCidrText ? TextCost(Size(args[1])) : 0);
    case CostRule::kValidate:
      if (!args[0].is(Kind::kFormat)) return 1;
      return RegexCost(Size(args[1]), args[0].format().regex_size);
    case CostRule::kEquals:
      return EqualsCost(args);
    case CostRule::kNotEquals:
      return Smaller(args);
    case CostRule::kTextOfSecond:
      return TextCost(DeepSize(args[1]));
    case CostRule::kInList:
      return DeepSize(args[1]);
    case CostRule::kConcatenation:
      return TextCost(DeepSize(args[0]) + DeepSize(args[1]));
    case CostRule::kContains:
      return TextCost(DeepSize(args[0])) * TextCost(DeepSize(args[1]));
  }
  return 1;
}

}  // namespace nos::cel
