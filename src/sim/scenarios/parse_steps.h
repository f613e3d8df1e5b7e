// Parses the steps of a scenario: operations and expectations. Internal to this folder. Errors:
// kInvalid with file and line.
#pragma once

#include <optional>

#include "sim/scenarios/steps.h"
#include "sim/scenarios/words.h"

namespace nos::sim {

// A step that begins with `keyword` (already taken); nullopt if the keyword is unknown.
Result<std::optional<Action>> ParseOperation(std::string_view keyword, Words& words);
// After the word "expect".
Result<std::vector<Action>> ParseExpectation(Words& words);
// After the words "claim", "claim-template", "device-class", "device-taint", "allocate".
Result<Action> ParseClaim(Words& words);
Result<Action> ParseClaimTemplate(Words& words);
Result<Action> ParseDeviceClass(Words& words);
Result<Action> ParseDeviceTaint(Words& words);
Result<Action> ParseAllocate(Words& words);
// After the words "expect claim".
Result<Action> ParseClaimExpectation(Words& words);
// The kind that the first four of these words name; "" for others.
std::string KindOfClaims(std::string_view word);
// The keywords of ParseOperation, for messages.
std::string OperationKeywords();

}  // namespace nos::sim
