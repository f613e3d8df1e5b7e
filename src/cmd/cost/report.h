// Output of `nos cost`, from an answer of a telemetry server to a table. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/table.h"
#include "codec/json.h"

namespace nos::cmd {

// `answer`: as in GET cost. `wide`: with all categories. The total is the last row.
TextTable CostTableOf(const Json& answer, bool wide);
// "2026-10" for "2026-11". Error: kInvalid.
Result<std::string> MonthBefore(std::string_view month);
// The line about the end of the month, or why there is none. `answer`: as in GET cost-forecast;
// null: none was asked for.
std::string ForecastText(const Json& answer);
// Lines below the table: the note of the prices, and GPUs without a price; "" for none.
std::string CostNotes(const Json& answer);

}  // namespace nos::cmd
