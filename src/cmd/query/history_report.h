// What `nos get history` prints, from what a telemetry server says to table. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/table.h"
#include "codec/json.h"

namespace nos::cmd {

// "2026-01-02T03:04:05Z", "now", or how long ago: "90m", "1d12h". Error: kInvalid.
Result<int64_t> ParseMoment(std::string_view text, int64_t now);

struct HistoryRow {
  int64_t at = 0;                   // milliseconds since the epoch
  std::string kind, subject, what;  // "layout", "node-1", "gpu 0 +1g.5gb@3"
};

// Events as GET history has them, the oldest first, and the layouts before them, as GET gpus has
// them. What says nothing to people is left out: a layout that is told again.
std::vector<HistoryRow> HistoryRows(const std::vector<Json>& events, const Json& before);
TextTable HistoryTable(const std::vector<HistoryRow>& rows);

// How the GPUs of an answer to GET gpus are cut: a row each. `node`: only that one; "": all.
TextTable LayoutTable(const Json& gpus, const std::string& node);

}  // namespace nos::cmd
