// The route about what repartitioning saved.
#include "telemetryserver/savings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "telemetryserver/api.h"
#include "telemetryserver/api/cost_rows.h"
#include "telemetryserver/cost.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kFarAway = 9'999'999'999'999;
constexpr telemetry::Millis kMaxTime = 92 * kDay;
constexpr int kMaxPages = 100;  // of kMaxScanned reports of decisions
// A client waits for 30 s.
constexpr Duration kMaxReplay = std::chrono::seconds(15);
constexpr std::array<std::string_view, 5> kTypes = {"plan", "preemption", "reclaim", "move",
                                                    "scale"};
constexpr const char* kBusy = "other readers compute savings: retry in some seconds";

double Rounded(double value) { return std::round(value * 1000) / 1000; }

void AppendSpread(std::string_view key, const Spread& spread, JsonText& json) {
  json.Key(key).Begin('{').Key("low").Number(Rounded(spread.low));
  json.Key("middle").Number(Rounded(spread.middle));
  json.Key("high").Number(Rounded(spread.high)).End('}');
}

// Amounts in proportion to the GPUs that would have been added.
void AppendSaved(const Spread& gpus, double had, std::optional<Micros> bill, JsonText& json) {
  json.Key("saved");
  if (!bill) {
    json.Null();
    return;
  }
  const auto of = [&](double with) {
    return Exact(std::llround(static_cast<double>(*bill) * (with / had - 1)));
  };
  json.Begin('{').Key("low").Text(of(gpus.low)).Key("middle").Text(of(gpus.middle));
  json.Key("high").Text(of(gpus.high)).End('}');
}

// Decisions of the time by type, and the pods that each evicted.
struct Decisions {
  int64_t count = 0, victims = 0;
};

Result<std::map<std::string, Decisions>> CountDecisions(Archive& archive, int64_t cluster,
                                                        telemetry::Millis from,
                                                        telemetry::Millis to) {
  std::map<std::string, Decisions> counts;
  EventQuery query{from, to, {"decision"}, "", kMaxScanned};
  query.latest = true;  // a decision is reported again while it lasts
  for (int page = 0; page < kMaxPages; ++page) {
    NOS_ASSIGN(const std::optional<EventPlace> next,
               archive.Scan(cluster, query, [&](Event& event) {
                 const std::string_view type = FindString(event.body, "type");
                 const bool known = std::ranges::find(kTypes, type) != kTypes.end();
                 Decisions& of = counts[known ? std::string(type) : "other"];
                 ++of.count;
                 const Json* victims = Find(event.body, "victims");
                 if (victims != nullptr && victims->is_array())
                   of.victims += std::ssize(victims->get_array());
                 return false;
               }));
    if (!next) return counts;
    query.before = next;
  }
  return Invalid("that time has too many decisions: ask for a shorter time");
}

void AppendAlternative(const Alternative& alternative, const Savings& savings,
                       std::optional<Micros> bill, JsonText& json) {
  const double had = savings.gpus;
  const auto hours = [&](double with) { return savings.gpu_hours * (with / had - 1); };
  const Spread& gpus = alternative.gpus;
  json.Begin('{').Key("name").Text(alternative.name);
  AppendSpread("waiting_hours", alternative.waiting_hours, json);
  AppendSpread("started", alternative.started, json);
  AppendSpread("gpus", gpus, json);
  json.Key("enough").Bool(alternative.enough);
  AppendSpread("saved_gpu_hours", {hours(gpus.low), hours(gpus.middle), hours(gpus.high)}, json);
  AppendSaved(gpus, had, bill, json);
  json.Key("layouts").Begin('[');
  for (const auto& [layout, count] : alternative.layouts) {
    json.Begin('{').Key("layout").Text(layout).Key("gpus").Number(count).End('}');
  }
  json.End(']').End('}');
}

}  // namespace

Api::Reply Api::Saved(const ApiCall& call) {
  const telemetry::Millis now = parts_.recorder.Now();
  NOS_ASSIGN(telemetry::Millis to, call.Number("to", now, 1, kFarAway));
  NOS_ASSIGN(telemetry::Millis from,
             call.Number("from", std::max<telemetry::Millis>(0, to - 7 * kDay), 0, kFarAway));
  if (from >= to) return Invalid("from lies after to");
  if (to - from > kMaxTime) return Invalid("at most 92 days at once");
  const auto turn = savings_.Begin();
  if (turn == nullptr) return Status(Code::kUnavailable, kBusy);
  const SteadyClock steady;
  const Time begun = steady.Now();
  NOS_ASSIGN(const int64_t id, IdOf(call.cluster));
  Archive& archive = parts_.recorder.archive();
  NOS_ASSIGN(const auto begin, archive.Begin(id));
  to = std::min(to, now);
  from = std::min(std::max(from, begin.value_or(to)), to);
  Savings savings{.from = from, .to = to};
  std::optional<Micros> bill;
  NOS_ASSIGN(const auto decisions, CountDecisions(archive, id, from, to));
  if (from < to) {
    NOS_ASSIGN(const Past past, ReadPast(archive, id, parts_.catalogue, {from, to}));
    NOS_ASSIGN(savings, SavingsOf(past, parts_.catalogue,
                                  [&] { return steady.Now() - begun > kMaxReplay; }));
    if (parts_.costs != nullptr && !parts_.costs->prices().rules.empty()) {
      NOS_ASSIGN(const Ledger ledger, parts_.costs->Between(call.cluster, from, to));
      if (ledger.total().unpriced == 0) bill = ledger.total().cost;
    }
  }
  JsonText json;
  json.Begin('{').Key("cluster").Text(call.cluster).Key("from").Number(from).Key("to").Number(to);
  json.Key("gpus")
      .Number(Rounded(savings.gpus))
      .Key("gpu_hours")
      .Number(Rounded(savings.gpu_hours));
  json.Key("pods").Number(static_cast<int64_t>(savings.pods));
  json.Key("started").Number(static_cast<int64_t>(savings.started));
  json.Key("waiting_hours").Number(Rounded(savings.waiting_hours));
  json.Key("median_wait_ms").Number(savings.median_wait);
  json.Key("p95_wait_ms").Number(savings.p95_wait);
  json.Key("unknown_runs").Number(static_cast<int64_t>(savings.unknown_runs));
  json.Key("left_out").Number(static_cast<int64_t>(savings.left_out));
  json.Key("replays").Number(int64_t{kSavingsReplays});
  json.Key("currency").Text(parts_.costs == nullptr ? "" : parts_.costs->prices().currency);
  json.Key("cost");
  bill ? json.Text(Exact(*bill)) : json.Null();
  json.Key("decisions").Begin('[');
  for (const auto& [type, of] : decisions) {
    json.Begin('{').Key("type").Text(type).Key("count").Number(of.count);
    json.Key("victims").Number(of.victims).End('}');
  }
  json.End(']').Key("alternatives").Begin('[');
  for (const Alternative& alternative : savings.alternatives) {
    AppendAlternative(alternative, savings, bill, json);
  }
  json.End(']').End('}');
  return std::move(json.text());
}

}  // namespace nos::telemetryserver
