#include "telemetryserver/api/months.h"

#include <fmt/format.h>

#include <chrono>

#include "base/text.h"

namespace nos::telemetryserver {
namespace {

using std::chrono::milliseconds;

telemetry::Millis BeginOf(std::chrono::year_month month) {
  const std::chrono::sys_days day = month / std::chrono::day(1);
  return std::chrono::duration_cast<milliseconds>(day.time_since_epoch()).count();
}

}  // namespace

Result<Month> MonthOf(std::string_view name, telemetry::Millis now) {
  std::chrono::year_month month;
  if (name.empty()) {
    const auto day = std::chrono::floor<std::chrono::days>(
        std::chrono::sys_time<milliseconds>(milliseconds(now)));
    const std::chrono::year_month_day date(day);
    month = date.year() / date.month();
  } else {
    const bool shaped = name.size() == 7 && name[4] == '-';
    const auto year = shaped ? ParseInt(name.substr(0, 4)) : std::nullopt;
    const auto number = shaped ? ParseInt(name.substr(5)) : std::nullopt;
    if (!year || !number || *year < 1970 || *number < 1 || *number > 12) {
      return Invalid(fmt::format("month={} is no month: write 2026-11", Shortened(name, 40)));
    }
    month = std::chrono::year(static_cast<int>(*year)) /
            std::chrono::month(static_cast<unsigned>(*number));
  }
  return Month{fmt::format("{:04}-{:02}", static_cast<int>(month.year()),
                           static_cast<unsigned>(month.month())),
               {BeginOf(month), BeginOf(month + std::chrono::months(1))}};
}

}  // namespace nos::telemetryserver
