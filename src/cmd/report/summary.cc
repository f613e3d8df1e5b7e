#include "cmd/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "cmd/cli/html_page.h"
#include "cmd/cli/money.h"
#include "codec/millionths.h"

namespace nos::cmd {
namespace {

constexpr size_t kMaxTeams = 20;
constexpr const char* kNotes =
    "Without repartitioning, the same pods wait in one queue on the same GPUs at the same times. "
    "An "
    "estimate: starts cost no time there, CPU and memory of nodes never end, and nothing is "
    "evicted. "
    "Ranges are those of several replays, with unknown run times drawn from similar pods.";

// Categories of cost, in the order in which people ask, as a part of all.
constexpr std::array<std::pair<const char*, const char*>, 8> kUses = {{
    {"used", "used"},
    {"idle", "held and idle"},
    {"unknown", "held, not measured"},
    {"free", "free"},
    {"unpartitioned", "not partitioned"},
    {"fragmented", "locked"},
    {"stranded", "stranded"},
    {"not_reported", "not reported"},
}};
// Types of decisions with victims, and what happened to these.
constexpr std::array<std::array<const char*, 3>, 3> kEvictions = {{
    {"reclaim", "evicted for elastic quotas", "pod"},
    {"preemption", "evicted for higher priorities", "pod"},
    {"move", "moved", "pod"},
}};

double NumberAt(const Json& object, std::string_view key) {
  const Json* number = Find(object, key);
  return number != nullptr && number->is_number() ? number->to_number<double>() : 0;
}
int64_t IntegerAt(const Json& object, std::string_view key) {
  return std::llround(NumberAt(object, key));
}

// "1,204", "12.5"; numbers below 100 have a digit after the point unless they are whole.
std::string NumberText(double number) {
  const double rounded = std::round(number * 10) / 10;
  const bool whole = rounded == std::floor(rounded) || rounded >= 100;
  return whole ? Grouped(std::llround(rounded)) : fmt::format("{:.1f}", rounded);
}

// "15 s", "4 min", "2.5 h".
std::string WaitText(int64_t millis) {
  constexpr int64_t kSecond = 1000, kMinute = 60'000, kHour = 3'600'000;
  millis = std::max(millis, kSecond);
  if (millis < 100 * kSecond) return fmt::format("{} s", (millis + kSecond / 2) / kSecond);
  if (millis < 100 * kMinute) return fmt::format("{} min", (millis + kMinute / 2) / kMinute);
  return fmt::format("{:.1f} h", static_cast<double>(millis) / static_cast<double>(kHour));
}

std::string DayText(int64_t millis) {
  return FormatTime(Time(std::chrono::milliseconds(millis))).substr(0, 16) + "Z";
}

std::string RangeText(const std::string& low, const std::string& middle, const std::string& high) {
  return low == high ? middle : fmt::format("{} ({}–{})", middle, low, high);
}

// "240", "240 (231–252)".
std::string SpreadText(const Json& spread) {
  const auto at = [&](std::string_view key) { return NumberText(NumberAt(spread, key)); };
  return RangeText(at("low"), at("middle"), at("high"));
}

// In whole units of the currency from 100 on.
std::string MoneySpreadText(const Json& spread) {
  constexpr int64_t kUnit = 1'000'000;
  const auto at = [&](std::string_view key) {
    const int64_t amount = ParseMillionths(FindString(spread, key)).value_or(0);
    return amount < 100 * kUnit ? fmt::format("{}.{:02}", amount / kUnit, amount % kUnit / 10'000)
                                : Grouped((amount + kUnit / 2) / kUnit);
  };
  return RangeText(at("low"), at("middle"), at("high"));
}

std::string NameOf(const Json& alternative) {
  const std::string_view name = FindString(alternative, "name");
  if (name == "whole") return "whole GPUs";
  return name == "static" ? "static layouts" : std::string(name);
}

bool HasPrices(const Json& cost) {
  const Json* configured = Find(cost, "configured");
  return configured != nullptr && configured->is_bool() && configured->get_bool();
}

std::string PeriodText(const Json& savings) {
  return fmt::format("{}, {} to {}", FindString(savings, "cluster"),
                     DayText(IntegerAt(savings, "from")), DayText(IntegerAt(savings, "to")));
}

std::string ServedText(const Json& savings) {
  const int64_t left_out = IntegerAt(savings, "left_out");
  return fmt::format("{} of {} pods got GPUs: {} GPUs on average, {} GPU hours{}",
                     Grouped(IntegerAt(savings, "started")), Grouped(IntegerAt(savings, "pods")),
                     NumberText(NumberAt(savings, "gpus")),
                     NumberText(NumberAt(savings, "gpu_hours")),
                     left_out == 0 ? "" : fmt::format("; {} more left out", Grouped(left_out)));
}

std::string WaitedText(const Json& savings) {
  return fmt::format(
      "{} h together; of the pods that started, half waited at most {}, 95 % at most {}",
      NumberText(NumberAt(savings, "waiting_hours")),
      WaitText(IntegerAt(savings, "median_wait_ms")), WaitText(IntegerAt(savings, "p95_wait_ms")));
}

// "40,320.00 EUR: 61 % used, 22 % held and idle, ..."; "" if nothing has a price.
std::string UsesText(const Json& cost) {
  const auto all = ParseMillionths(FindString(cost, "total", "cost"));
  if (!all || *all == 0) return "";
  std::vector<std::string> uses;
  for (const auto& [key, label] : kUses) {
    const auto part = ParseMillionths(FindString(cost, "total", "categories", key));
    if (!part || *part == 0) continue;
    const double share = 100 * static_cast<double>(*part) / static_cast<double>(*all);
    uses.push_back(share < 1 ? fmt::format("<1 % {}", label)
                             : fmt::format("{:.0f} % {}", share, label));
  }
  const auto unpriced = ParseMillionths(FindString(cost, "total", "unpriced_gpu_hours"));
  if (unpriced && *unpriced > 0) {
    uses.push_back(fmt::format("and {} GPU hours without a price",
                               NumberText(static_cast<double>(*unpriced) / 1e6)));
  }
  return fmt::format("{} {}: {}", MoneyText(Find(cost, "total", "cost")),
                     FindString(cost, "currency"), Join(uses, ", "));
}

std::string Counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", Grouped(count), what, count == 1 ? "" : "s");
}

std::string DecisionsText(const Json& savings) {
  const auto of = [&](std::string_view type) -> const Json* {
    for (const Json& each : Find(savings, "decisions")->get_array()) {
      if (FindString(each, "type") == type) return &each;
    }
    return nullptr;
  };
  std::vector<std::string> texts;
  const Json* plans = of("plan");
  texts.push_back(
      Counted(plans == nullptr ? 0 : IntegerAt(*plans, "count"), "repartitioning plan"));
  for (const auto& [type, done, what] : kEvictions) {
    const Json* decisions = of(type);
    if (decisions == nullptr) continue;
    texts.push_back(Counted(IntegerAt(*decisions, "victims"), what) + " " + done);
  }
  return Join(texts, ", ");
}

std::string BorrowedText(const Json& cost) {
  const auto all = ParseMillionths(FindString(cost, "total", "cost"));
  const auto borrowed = ParseMillionths(FindString(cost, "total", "borrowed"));
  if (!all || !borrowed || *all == 0) return "";
  return fmt::format("pods beyond their guarantee had {} {} of GPUs, {:.0f} % of the bill",
                     MoneyText(Find(cost, "total", "borrowed")), FindString(cost, "currency"),
                     100 * static_cast<double>(*borrowed) / static_cast<double>(*all));
}

using Cells = std::vector<std::string>;

// The header, and a row for "as it was" and each alternative. What is saved is money where all GPUs
// have a price, else GPU hours.
std::vector<Cells> AlternativeRows(const Json& savings) {
  const bool priced = !FindString(savings, "cost").empty();
  const std::string unit = priced ? std::string(FindString(savings, "currency")) : "GPU h";
  std::vector<Cells> rows = {
      {"WITHOUT", "WAITING (h)", "STARTED", "GPUS NEEDED", fmt::format("SAVED ({})", unit)}};
  rows.push_back({"(as it was)", NumberText(NumberAt(savings, "waiting_hours")),
                  Grouped(IntegerAt(savings, "started")), NumberText(NumberAt(savings, "gpus")),
                  "-"});
  for (const Json& each : Find(savings, "alternatives")->get_array()) {
    const Json* enough = Find(each, "enough");
    const bool bounded = enough != nullptr && enough->is_bool() && enough->get_bool();
    const std::string more = bounded ? "" : "over ";
    rows.push_back({NameOf(each), SpreadText(*Find(each, "waiting_hours")),
                    SpreadText(*Find(each, "started")), more + SpreadText(*Find(each, "gpus")),
                    more + (priced ? MoneySpreadText(*Find(each, "saved"))
                                   : SpreadText(*Find(each, "saved_gpu_hours")))});
  }
  return rows;
}

// The header, and a row for each team: the dearest first.
std::vector<Cells> TeamRows(const Json& cost) {
  std::vector<Cells> rows = {
      {"TEAM", fmt::format("COST ({})", FindString(cost, "currency")), "USED", "IDLE", "BORROWED"}};
  for (const Json& row : Find(cost, "rows")->get_array()) {
    if (rows.size() > kMaxTeams) break;
    const std::string_view kind = FindString(row, "kind");
    const std::string name = kind == "unallocated" ? "(no pod)"
                             : kind == "rest"      ? "(further teams)"
                             : kind == "others"    ? "(not visible to you)"
                                                   : std::string(FindString(row, "name"));
    rows.push_back({name, MoneyText(Find(row, "cost")), MoneyText(Find(row, "categories", "used")),
                    MoneyText(Find(row, "categories", "idle")), MoneyText(Find(row, "borrowed"))});
  }
  return rows;
}

std::string TableText(const std::vector<Cells>& rows, size_t width) {
  TextTable table(rows.front());
  for (size_t i = 1; i < rows.size(); ++i) table.AddRow(rows[i]);
  return table.ToString(width);
}

std::string TableHtml(const std::vector<Cells>& rows) {
  std::string html = "<table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    html += "<tr>";
    for (const std::string& cell : rows[i]) {
      html += fmt::format("<{0}>{1}</{0}>", i == 0 ? "th" : "td", EscapeHtml(cell));
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

// Words of `text` in lines of at most `width` characters, all but the first one indented.
std::string Wrapped(std::string_view text, size_t width, size_t indent = 0) {
  std::string lines, line;
  for (const std::string_view word : Split(text, ' ')) {
    if (!line.empty() && DisplayWidth(line) + 1 + DisplayWidth(word) > width) {
      lines += line + "\n";
      line.assign(indent, ' ');
      line += word;
      continue;
    }
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  return lines + line + "\n";
}

bool IsSpread(const Json* value) {
  return value != nullptr && value->is_object() && Find(*value, "low") != nullptr &&
         Find(*value, "middle") != nullptr && Find(*value, "high") != nullptr;
}

bool IsArray(const Json* value) { return value != nullptr && value->is_array(); }

}  // namespace

Status CheckAnswers(const ReportAnswers& answers) {
  Status other = Invalid("the server is not a nos telemetry server of this version");
  const Json *decisions = Find(answers.savings, "decisions"),
             *alternatives = Find(answers.savings, "alternatives");
  if (!IsArray(decisions) || !IsArray(alternatives)) return other;
  const bool priced = !FindString(answers.savings, "cost").empty();
  for (const Json& each : alternatives->get_array()) {
    for (const char* key : {"waiting_hours", "started", "gpus", "saved_gpu_hours"}) {
      if (!IsSpread(Find(each, key))) return other;
    }
    if (priced && !IsSpread(Find(each, "saved"))) return other;
  }
  if (!answers.cost.is_null() && !IsArray(Find(answers.cost, "rows"))) return other;
  return Status::Ok();
}

std::string ReportText(const ReportAnswers& answers, size_t width) {
  const Json& savings = answers.savings;
  const bool priced = HasPrices(answers.cost);
  std::string text;
  const size_t wide = std::min<size_t>(width, 100);
  const auto add = [&](std::string_view name, const std::string& what) {
    constexpr size_t kIndent = 11;
    text += Wrapped(Printable(fmt::format("{:<10} {}", name, what)), wide, kIndent);
  };
  text += Truncate(Printable(PeriodText(savings)), width) + "\n\n";
  add("Served", ServedText(savings));
  add("Waited", WaitedText(savings));
  add("Cost", priced ? UsesText(answers.cost) : "the server has no prices of GPUs (docs/cost.md)");
  add("Decided", DecisionsText(savings));
  if (priced) add("Borrowed", BorrowedText(answers.cost));
  text += "\n";
  if (Find(savings, "alternatives")->get_array().empty()) {
    text += "No GPUs or no pods were reported in this time.\n";
    return text;
  }
  text += TableText(AlternativeRows(savings), width) + "\n" + Wrapped(kNotes, wide);
  if (priced) text += "\n" + TableText(TeamRows(answers.cost), width);
  return text;
}

Json ReportJson(const ReportAnswers& answers) {
  return JsonObject{{"cluster", FindString(answers.savings, "cluster")},
                    {"from", IntegerAt(answers.savings, "from")},
                    {"to", IntegerAt(answers.savings, "to")},
                    {"savings", answers.savings},
                    {"cost", answers.cost}};
}

std::string ReportHtml(const ReportAnswers& answers) {
  const Json& savings = answers.savings;
  const bool priced = HasPrices(answers.cost);
  std::string body = "<p>" + EscapeHtml(PeriodText(savings)) + "</p>\n<div class=\"figures\">";
  const auto figure = [&](const std::string& number, std::string_view what) {
    body += fmt::format("<div><b>{}</b>{}</div>", EscapeHtml(number), EscapeHtml(what));
  };
  figure(fmt::format("{} of {}", Grouped(IntegerAt(savings, "started")),
                     Grouped(IntegerAt(savings, "pods"))),
         "pods got GPUs");
  figure(NumberText(NumberAt(savings, "waiting_hours")) + " h", "all pods waited together");
  for (const Json& each : Find(savings, "alternatives")->get_array()) {
    const std::string what = FindString(each, "name") == "whole"
                                 ? "GPUs would have been needed with whole GPUs, instead of "
                                 : "GPUs would have been needed with static layouts, instead of ";
    figure(NumberText(NumberAt(*Find(each, "gpus"), "middle")),
           what + NumberText(NumberAt(savings, "gpus")));
  }
  body += "</div>\n<h2>The time</h2>\n<ul>\n";
  const auto item = [&](const std::string& text) {
    if (!text.empty()) body += "<li>" + EscapeHtml(text) + "</li>\n";
  };
  item(ServedText(savings));
  item("Waiting: " + WaitedText(savings));
  item(DecisionsText(savings));
  if (priced) item(UsesText(answers.cost));
  if (priced) item("Quotas: " + BorrowedText(answers.cost));
  body += "</ul>\n";
  if (!Find(savings, "alternatives")->get_array().empty()) {
    body += "<h2>With and without repartitioning</h2>\n" + TableHtml(AlternativeRows(savings));
    body += "<p class=\"note\">" + EscapeHtml(kNotes) + "</p>\n";
  }
  if (priced) {
    body += "<h2>Teams</h2>\n" + TableHtml(TeamRows(answers.cost));
    body += "<p class=\"note\">" + EscapeHtml(FindString(answers.cost, "note")) + "</p>\n";
  }
  return HtmlPage("GPU report", "", body);
}

}  // namespace nos::cmd
