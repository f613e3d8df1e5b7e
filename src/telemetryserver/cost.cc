#include "telemetryserver/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/log.h"
#include "telemetryserver/cost/history.h"
#include "telemetryserver/metrics.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxRows = 1'000'000;  // of kept hours: about 200 MB
// Agents deliver within seconds; those that were cut off deliver later and are not counted.
constexpr telemetry::Millis kPatience = 10 * kMinute;
constexpr const char* kTooLarge = "the sums are too large: ask for a shorter time";

}  // namespace

Result<Ledger> Costs::Between(const std::string& cluster, telemetry::Millis from,
                              telemetry::Millis to) {
  Ledger ledger;
  NOS_RETURN_IF_ERROR(EachHour(
      cluster, from, to, [&](telemetry::Millis, const Ledger& of_hour) { ledger.Add(of_hour); }));
  if (!ledger.overflowed()) return ledger;
  return Invalid(kTooLarge);
}

Status Costs::EachPeriod(const std::string& cluster, telemetry::Millis from, telemetry::Millis to,
                         const Periods& periods,
                         FunctionRef<void(telemetry::Millis begin, const Ledger& ledger)> take) {
  const auto number = [&](telemetry::Millis at) {
    return FloorTo(at - periods.phase + periods.length, periods.length);
  };
  Ledger ledger;
  std::optional<telemetry::Millis> begin;
  bool overflowed = false;
  const auto end = [&] {
    if (begin) take(*begin, ledger);
    overflowed = overflowed || ledger.overflowed();
    ledger = {};
    begin.reset();
  };
  NOS_RETURN_IF_ERROR(EachHour(cluster, from, to, [&](telemetry::Millis at, const Ledger& of_hour) {
    if (begin && number(*begin) != number(at)) end();
    if (!begin) begin = at;
    ledger.Add(of_hour);
  }));
  end();
  return overflowed ? Invalid(kTooLarge) : Status::Ok();
}

Result<std::optional<telemetry::Millis>> Costs::Begin(const std::string& cluster) {
  std::optional<int64_t> id;
  recorder_.Look(cluster, [&](const Live& live) { id = live.id; });
  if (!id) return NotFound(fmt::format("there is no cluster \"{}\"", cluster));
  return recorder_.archive().Begin(*id);
}

Status Costs::EachHour(const std::string& cluster, telemetry::Millis from, telemetry::Millis to,
                       FunctionRef<void(telemetry::Millis hour, const Ledger& ledger)> take) {
  std::optional<int64_t> id;
  recorder_.Look(cluster, [&](const Live& live) { id = live.id; });
  if (!id) return NotFound(fmt::format("there is no cluster \"{}\"", cluster));
  NOS_ASSIGN(const auto begin, recorder_.archive().Begin(*id));
  const telemetry::Millis now = recorder_.Now();
  to = std::min(to, now);
  from = std::max(from, begin.value_or(to));
  History history({recorder_, catalogue_, prices_}, *id, cluster);
  size_t computed = 0;
  bool kept_all = true;
  for (telemetry::Millis hour = FloorTo(from, kHour); hour < to; hour += kHour) {
    const telemetry::Millis first = std::max(from, hour), last = std::min(to, hour + kHour);
    // The hour in which history begins is whole from its first record on.
    const bool whole = (first == hour || first == begin) && last == hour + kHour;
    if (auto kept = whole ? Kept(cluster, hour) : nullptr; kept != nullptr) {
      take(first, *kept);
      continue;
    }
    Hour fresh;
    recorder_.Look(cluster, [&](const Live& live) { fresh.mark = live.arrivals.Mark(); });
    Ledger of_hour;
    NOS_ASSIGN(const bool settled, history.Bill(first, last, of_hour));
    take(first, of_hour);
    computed += history.gpus();
    if (whole && settled) {
      fresh.ledger = std::make_shared<const Ledger>(std::move(of_hour));
      kept_all = Keep(cluster, hour, std::move(fresh)) && kept_all;
    }
    if (computed > max_gpu_hours_ && last < to) {
      if (!kept_all) {
        return Invalid("that time has too many GPU hours for one answer: ask for a shorter time");
      }
      return {Code::kUnavailable,
              fmt::format("computing the costs of that time, {} % are done: ask again in a moment",
                          100 * (last - from) / (to - from))};
    }
  }
  return Status::Ok();
}

std::shared_ptr<const Ledger> Costs::Kept(const std::string& cluster, telemetry::Millis hour) {
  Hour kept;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = hours_.find({cluster, hour});
    if (found == hours_.end()) return nullptr;
    kept = found->second;
  }
  bool changed = true;
  recorder_.Look(cluster,
                 [&](const Live& live) { changed = live.arrivals.Changed(hour, kept.mark); });
  return changed ? nullptr : kept.ledger;
}

bool Costs::Keep(const std::string& cluster, telemetry::Millis hour, Hour computed) {
  const std::scoped_lock lock(mutex_);
  const size_t rows = computed.ledger->rows().size() + 1;
  Hour& kept = hours_[{cluster, hour}];
  if (kept.ledger != nullptr) kept_rows_ -= kept.ledger->rows().size() + 1;
  kept = std::move(computed);
  kept_rows_ += rows;
  // Recent hours are asked for most.
  const bool full = kept_rows_ > kMaxRows;
  while (kept_rows_ > kMaxRows && hours_.size() > 1) {
    const auto oldest =
        std::ranges::min_element(hours_, {}, [](const auto& each) { return each.first.second; });
    kept_rows_ -= oldest->second.ledger->rows().size() + 1;
    hours_.erase(oldest);
  }
  return !full;
}

void Costs::Count(Metrics& metrics) {
  if (prices_.rules.empty()) return;
  const telemetry::Millis closed = FloorTo(recorder_.Now() - kPatience, kHour);
  for (const std::string& cluster : recorder_.Clusters()) {
    auto& until = counted_until_.try_emplace(cluster, closed).first->second;
    while (until < closed) {
      const auto ledger = Between(cluster, until, until + kHour);
      if (!ledger.ok()) {
        Log(LogLevel::kWarn, "failed to compute costs, leaving an hour out of metrics",
            {{"cluster", cluster}, {"error", ledger.status().ToString()}});
      } else {
        CountHour(cluster, *ledger, metrics);
      }
      until += kHour;
    }
  }
}

void Costs::CountHour(const std::string& cluster, const Ledger& ledger, Metrics& metrics) {
  std::map<std::pair<std::string, Category>, Micros> sums;
  std::set<std::string>& known = of_namespaces_[cluster];
  for (const auto& [key, amounts] : ledger.rows()) {
    if (known.size() < kMaxNamespaces) known.insert(key.ns);
    sums[{known.contains(key.ns) ? key.ns : kOthers, key.category}] += amounts.cost;
  }
  const auto real = [](Micros amount) {
    return static_cast<double>(amount) / static_cast<double>(kMicrosPerUnit);
  };
  for (const auto& [key, cost] : sums) {
    metrics.Count(kCost,
                  {{"cluster", cluster},
                   {"namespace", key.first},
                   {"category", std::string(NameOf(key.second))},
                   {"currency", prices_.currency}},
                  real(cost));
  }
  metrics.Count(kUnpricedTime, {{"cluster", cluster}}, real(ledger.total().unpriced));
}

}  // namespace nos::telemetryserver
