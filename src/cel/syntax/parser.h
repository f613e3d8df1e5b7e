// Parses CEL (cel-spec, doc/langdef.md) with optional syntax (a.?b, a[?b], [?x]) and expands
// macros.
//
// The limits are those of cel-go: each grammar rule may be nested 250 times, and so may operators,
// selections and calls within each other.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "cel/syntax/ast.h"

namespace nos::cel {

// Error: kInvalid with the place and the cause.
Result<std::unique_ptr<Ast>> Parse(std::string_view source);

}  // namespace nos::cel
