// Output of `nos get history`, from answers of a telemetry server to tables. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/table.h"
#include "codec/json.h"

namespace nos::cmd {

// "2026-01-02T03:04:05Z", "now", or a duration before now: "90m", "1d12h". Error: kInvalid.
Result<int64_t> ParseMoment(std::string_view text, int64_t now);

struct HistoryRow {
  int64_t at = 0;                   // milliseconds since the epoch
  std::string kind, subject, what;  // "layout", "node-1", "gpu 0 +1g.5gb@3"
};

// `events`: as in GET history, oldest first. `before`: layouts before the first event, as in
// GET gpus. Omits layouts that are repeated without a change.
std::vector<HistoryRow> HistoryRows(const std::vector<Json>& events, const Json& before);
TextTable HistoryTable(const std::vector<HistoryRow>& rows);

// Layouts of an answer to GET gpus, one row per GPU. `node`: only this node; "": all nodes.
TextTable LayoutTable(const Json& gpus, const std::string& node);

}  // namespace nos::cmd
