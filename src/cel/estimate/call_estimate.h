// Estimates of calls, for which cel-go's and Kubernetes' libraries have rules.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cel/estimate/device_size.h"
#include "cel/estimate/range.h"
#include "cel/syntax/ast.h"
#include "cel/types/static_type.h"

namespace nos::cel {

struct Argument {
  const Expr* expr = nullptr;
  std::optional<Range> size;
  Path path;

  Range SizeOrUnknown() const { return size.value_or(Range::Unknown()); }
  const Type& type() const { return *expr->type; }
};

struct CallEstimate {
  Range cost;  // without the arguments
  std::optional<Range> size;
};

// The rules of libraries; empty if cel-go's rule for the overload applies.
std::optional<CallEstimate> EstimateLibraryCall(std::string_view function,
                                                std::string_view overload, const Argument* target,
                                                const std::vector<Argument>& args);

}  // namespace nos::cel
