// The statements of a scenario that do or expect something. Not for use outside this folder.
// Errors: kInvalid with file and line.
#pragma once

#include <optional>

#include "sim/scenarios/scenario.h"
#include "sim/scenarios/words.h"

namespace nos::sim {

// A step that begins with `keyword` (already taken), or nothing when there is no such keyword.
Result<std::optional<Action>> ParseOperation(std::string_view keyword, Words& words);
// After the word "expect".
Result<std::vector<Action>> ParseExpectation(Words& words);
// The keywords ParseOperation knows, for messages.
std::string OperationKeywords();

}  // namespace nos::sim
