#include "telemetryserver/ingest/derived_series.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "base/millis.h"
#include "codec/gzip.h"
#include "telemetry/envelope.h"
#include "telemetryserver/derived.h"
#include "telemetryserver/estimate.h"
#include "telemetryserver/metrics.h"

namespace nos::telemetryserver {
namespace {

// Records older than this are part of a backlog: more records of other sources will follow.
constexpr telemetry::Millis kBacklog = 5 * kMinute;
// Pause after each step, as a multiple of its duration, because the same thread stores envelopes.
constexpr int kRest = 4;
constexpr telemetry::Millis kTicksAtOnce = 30;
constexpr Duration kRetry = std::chrono::seconds(10);

// True if an input of the derived series changes.
bool MakesSeries(const Effects& effects) {
  return std::ranges::any_of(effects.changes, [](const Effects::Change& change) {
    if (change.kind == "removed") {
      return !change.object.starts_with("job/") && !change.object.starts_with("queue/") &&
             !change.object.starts_with("pool/");
    }
    return change.kind == "layout" || change.kind == "node" || change.kind == "pod" ||
           change.kind == "quota";
  });
}

}  // namespace

telemetry::Millis DerivedSeries::Now() const { return ToMillis(uses_.clock.Now()); }

Status DerivedSeries::Load(Live& live) {
  NOS_ASSIGN(live.derived, uses_.store.DerivedOf(live.id));
  stored_[live.id] = live.derived;
  return Status::Ok();
}

void DerivedSeries::Note(Live& live, const telemetry::Record& record, const Effects& effects) {
  Derived& derived = live.derived;
  if (derived.until == 0) derived.until = FloorTo(record.at, kDeriveEvery) - kDeriveEvery;
  if (record.at >= derived.until - stale_) return;
  if (std::holds_alternative<telemetry::Readings>(record.what)) {
    MarkDue(live, record.at, record.at + stale_);
  }
  if (MakesSeries(effects)) MarkDue(live, record.at, derived.until);
}

std::string DerivedSeries::Tick(Live& live) {
  const telemetry::Millis tick = FloorTo(live.state.now(), kDeriveEvery);
  Derived& derived = live.derived;
  if (tick <= derived.until) return {};
  if (tick - derived.until > stale_)
    MarkDue(live, derived.until + kDeriveEvery, tick - kDeriveEvery);
  derived.until = tick;
  if (Now() - tick > kBacklog) MarkDue(live, tick, tick);  // followers receive what is known so far
  const std::string text = DerivedEnvelope(live.name, live.state, uses_.catalogue, tick, stale_);
  auto envelope = telemetry::ReadDerivedEnvelope(text);
  if (!envelope.ok())
    return {};  // cannot happen: ReadDerivedEnvelope reads what DerivedEnvelope writes
  const auto estimates = EstimateStarts(live.state, uses_.catalogue);
  const auto lock = uses_.clusters.Lock();
  live.state.SetEstimates(estimates);
  for (const telemetry::Record& record : envelope->records) {
    if (const auto* readings = std::get_if<telemetry::Readings>(&record.what)) {
      (void)live.heads.Add(record.at, *readings);  // names of this server
    }
  }
  return Gzip(text, 1);
}

// Marks ticks from the first at or after `from` to the last at or before `to` for recomputation.
void DerivedSeries::MarkDue(Live& live, telemetry::Millis from, telemetry::Millis to) {
  Derived& derived = live.derived;
  const telemetry::Millis first = std::max(from, Now() - kept_) + kDeriveEvery - 1;
  const telemetry::Millis begin = FloorTo(std::max<telemetry::Millis>(0, first), kDeriveEvery);
  const telemetry::Millis end = FloorTo(std::min(to, derived.until), kDeriveEvery) + kDeriveEvery;
  if (begin >= end) return;
  derived.again_from = derived.Again() ? std::min(derived.again_from, begin) : begin;
  derived.again_to = std::max(derived.again_to, end);
  if (backfill_ != nullptr && backfill_->id() == live.id && begin < backfill_->to())
    backfill_.reset();
}

Status DerivedSeries::Write(const Live& live) {
  if (stored_[live.id] == live.derived) return Status::Ok();
  return uses_.store.SetDerived(live.id, live.derived);
}

// Round robin over clusters. Null: no ticks are due, or not all of their records are on disk.
Live* DerivedSeries::Next() {
  std::vector<Live*> due;
  for (const auto& [name, live] : uses_.clusters.all()) {
    if (live->heads.samples() == 0) live->derived_flushed = live->derived.until;
    const Derived& derived = live->derived;
    if (derived.Again() && derived.again_from <= live->derived_flushed) due.push_back(live.get());
  }
  if (due.empty()) return nullptr;
  const auto next = std::ranges::find_if(due, [&](const Live* live) { return live->name > last_; });
  return next == due.end() ? due.front() : *next;
}

bool DerivedSeries::Step(bool hurry, bool unwritten) {
  const SteadyClock steady;
  const Time begin = steady.Now();
  if (begin < after_ && !hurry) return false;
  Live* live = nullptr;
  for (const auto& [name, each] : uses_.clusters.all()) {
    if (backfill_ != nullptr && backfill_->id() == each->id) live = each.get();
  }
  if (live == nullptr) live = Next();
  if (live == nullptr) return false;
  if (unwritten) return true;  // write its events first
  const Result<bool> done = StepOf(*live);
  if (done.ok()) {
    after_ = steady.Now() + (steady.Now() - begin) * kRest;
    return true;
  }
  after_ = begin + kRetry;
  backfill_.reset();
  uses_.metrics.Count(kWriteErrors, {});
  Log(LogLevel::kWarn, "delaying backfill of derived series",
      {{"error", done.status().ToString()}});
  return false;
}

// One step of the current stretch, or of the next one. True: a stretch is finished and written.
Result<bool> DerivedSeries::StepOf(Live& live) {
  if (backfill_ == nullptr) {
    backfill_ =
        std::make_unique<Backfill>(uses_.archive, uses_.catalogue, live.id, live.name, stale_);
    last_ = live.name;
  }
  if (!backfill_->begun()) {
    const telemetry::Millis from = live.derived.again_from;
    const telemetry::Millis most =
        std::min(live.derived.again_to, live.derived_flushed + kDeriveEvery);
    NOS_RETURN_IF_ERROR(backfill_->Begin(from, std::min(most, from + kTicksAtOnce * kDeriveEvery)));
    return false;
  }
  NOS_ASSIGN(const bool done, backfill_->Step(live.heads));
  if (!done) return false;
  Derived left = live.derived;
  left.again_from = backfill_->to();
  if (!left.Again()) left.again_from = left.again_to = 0;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(
        uses_.store.RemoveSamples(live.id, kDerivedSubjects, backfill_->from(), backfill_->to()));
    NOS_RETURN_IF_ERROR(uses_.store.Flush(live.id, backfill_->made()));
    return uses_.store.SetDerived(live.id, left);
  };
  NOS_RETURN_IF_ERROR(uses_.store.Transaction(write));
  live.derived = stored_[live.id] = left;
  const bool more = left.Again() && left.again_from <= live.derived_flushed;
  // Next cluster, unless a single cluster continues where the stretch ended.
  if (more && uses_.clusters.all().size() == 1) {
    backfill_->End();
  } else {
    backfill_.reset();
  }
  return true;
}

}  // namespace nos::telemetryserver
