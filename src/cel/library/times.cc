// Parts of timestamps and durations: getHours(), getFullYear("+02:00").
#include "cel/library/function.h"
#include "cel/values/timestamp.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

// A field of the calendar.
template <int64_t (*kField)(const CivilTime&)>
Value InUtc(Arena&, Args args) {
  return Value::Int(kField(CivilTime::Of(args[0].timestamp().seconds)));
}

template <int64_t (*kField)(const CivilTime&)>
Value InZone(Arena&, Args args) {
  const int64_t seconds = args[0].timestamp().seconds;
  const auto offset = ZoneOffset(args[1].text(), seconds);
  if (!offset) return Value::Error("unknown time zone");
  return Value::Int(kField(CivilTime::Of(seconds + *offset)));
}

int64_t Year(const CivilTime& civil) { return civil.year; }
int64_t Month(const CivilTime& civil) { return civil.month - 1; }
int64_t DayOfYear(const CivilTime& civil) { return civil.day_of_year; }
int64_t DayOfMonth(const CivilTime& civil) { return civil.day - 1; }
int64_t Date(const CivilTime& civil) { return civil.day; }
int64_t DayOfWeek(const CivilTime& civil) { return civil.weekday; }
int64_t Hours(const CivilTime& civil) { return civil.hour; }
int64_t Minutes(const CivilTime& civil) { return civil.minute; }
int64_t Seconds(const CivilTime& civil) { return civil.second; }

Value Milliseconds(Arena&, Args args) { return Value::Int(args[0].timestamp().nanos / 1'000'000); }
Value MillisecondsInZone(Arena& arena, Args args) {
  if (!ZoneOffset(args[1].text(), args[0].timestamp().seconds)) {
    return Value::Error("unknown time zone");
  }
  return Milliseconds(arena, args);
}

// Go computes whole units by way of doubles.
template <int64_t kUnit>
Value DurationIn(Arena&, Args args) {
  const int64_t nanos = args[0].integer();
  const int64_t whole = nanos / kUnit;
  const double units =
      static_cast<double>(whole) + static_cast<double>(nanos % kUnit) / static_cast<double>(kUnit);
  return Value::Int(static_cast<int64_t>(units));
}
Value DurationMilliseconds(Arena&, Args args) { return Value::Int(args[0].integer() / 1'000'000); }

template <int64_t (*kField)(const CivilTime&)>
void DeclareField(Declarer& declare, std::string_view name, const std::string& id,
                  std::string_view suffix = "_with_tz") {
  using namespace types;
  declare.Member(name, id, {&kTimestamp}, &kInt, InUtc<kField>);
  declare.Member(name, id + std::string(suffix), {&kTimestamp, &kString}, &kInt, InZone<kField>);
}

}  // namespace

void DeclareTimes(Declarer& declare) {
  using namespace types;
  constexpr int64_t kSecond = kNanosPerSecond;
  DeclareField<Year>(declare, "getFullYear", "timestamp_to_year");
  DeclareField<Month>(declare, "getMonth", "timestamp_to_month");
  DeclareField<DayOfYear>(declare, "getDayOfYear", "timestamp_to_day_of_year");
  DeclareField<DayOfMonth>(declare, "getDayOfMonth", "timestamp_to_day_of_month");
  DeclareField<Date>(declare, "getDate", "timestamp_to_day_of_month_1_based");
  DeclareField<DayOfWeek>(declare, "getDayOfWeek", "timestamp_to_day_of_week");
  DeclareField<Hours>(declare, "getHours", "timestamp_to_hours");
  declare.Member("getHours", "duration_to_hours", {&kDuration}, &kInt, DurationIn<3600 * kSecond>);
  DeclareField<Minutes>(declare, "getMinutes", "timestamp_to_minutes");
  declare.Member("getMinutes", "duration_to_minutes", {&kDuration}, &kInt,
                 DurationIn<60 * kSecond>);
  DeclareField<Seconds>(declare, "getSeconds", "timestamp_to_seconds", "_tz");
  declare.Member("getSeconds", "duration_to_seconds", {&kDuration}, &kInt, DurationIn<kSecond>);
  declare.Member("getMilliseconds", "timestamp_to_milliseconds", {&kTimestamp}, &kInt,
                 Milliseconds);
  declare.Member("getMilliseconds", "timestamp_to_milliseconds_with_tz", {&kTimestamp, &kString},
                 &kInt, MillisecondsInZone);
  declare.Member("getMilliseconds", "duration_to_milliseconds", {&kDuration}, &kInt,
                 DurationMilliseconds);
}

}  // namespace nos::cel
