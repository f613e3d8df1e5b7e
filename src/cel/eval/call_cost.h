// The cost of a call at run time: cel-go's and Kubernetes' cost trackers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cel/values/dynamic.h"

namespace nos::cel {

enum class CostRule : uint8_t {
  kOne,
  kListOutput,
  kFlatten,
  kCompareAll,      // every element of the first list with every other
  kCompareAllKeys,  // of the second list
  kSets,
  kSetsTwice,
  kTraversal,
  kText,       // one pass over the first argument
  kTextTwice,  // a pass and the result
  kResultTwice,
  kRegex,
  kFind,
  kCheck,
  kSelector,
  kContainsIp,
  kContainsIpText,
  kContainsCidr,
  kContainsCidrText,
  kValidate,
  kEquals,
  kNotEquals,
  kTextOfSecond,
  kInList,
  kConcatenation,
  kContains,
};

// `overload` is empty if the types do not decide which one is called.
CostRule CostRuleOf(std::string_view function, std::string_view overload);

uint64_t CallCost(CostRule rule, std::span<const Value> args, const Value& result);

}  // namespace nos::cel
