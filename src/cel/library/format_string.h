// "%d devices".format([n]): clauses s, d, f, e, b, x, X, o, with a precision for f and e.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "cel/values/list.h"

namespace nos::cel {

// An error if a clause and its argument do not fit.
Value FormatString(Arena& arena, std::string_view format, const ListValue& args);

// The clauses of a format, one for each argument: 's', 'd' and so on. Nullopt if the
// format is broken or has more clauses than `available` arguments.
std::optional<std::string> FormatClauses(std::string_view format, size_t available);

}  // namespace nos::cel
