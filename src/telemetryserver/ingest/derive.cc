// Series that the recorder computes: each tick in real time, and again for ticks whose records
// arrived late.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/millis.h"
#include "codec/gzip.h"
#include "telemetryserver/derived.h"
#include "telemetryserver/estimate.h"
#include "telemetryserver/ingest/metrics.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {
namespace {

// Records older than this are part of a backlog: more records of other sources will follow.
constexpr telemetry::Millis kBacklog = 5 * kMinute;
// Pause after each step, as a multiple of its duration, because the same thread stores envelopes.
constexpr int kRest = 4;
constexpr telemetry::Millis kTicksAtOnce = 30;
constexpr Duration kRetry = std::chrono::seconds(10);

}  // namespace

void Recorder::Derive(Live& live) {
  const telemetry::Millis tick = FloorTo(live.state.now(), kDeriveEvery);
  Derived& derived = live.derived;
  if (tick <= derived.until) return;
  if (tick - derived.until > stale()) Owe(live, derived.until + kDeriveEvery, tick - kDeriveEvery);
  derived.until = tick;
  if (Now() - tick > kBacklog) Owe(live, tick, tick);  // followers receive what is known so far
  const std::string text = DerivedEnvelope(live.name, live.state, catalogue_, tick, stale());
  auto envelope = telemetry::ReadDerivedEnvelope(text);
  if (!envelope.ok())
    return;  // cannot happen: ReadDerivedEnvelope reads what DerivedEnvelope writes
  pending_.push_back({live.id, {}, Gzip(text, 1)});
  const auto estimates = EstimateStarts(live.state, catalogue_);
  const std::scoped_lock lock(live_mutex_);
  live.state.SetEstimates(estimates);
  for (const telemetry::Record& record : envelope->records) {
    if (const auto* readings = std::get_if<telemetry::Readings>(&record.what)) {
      (void)live.heads.Add(record.at, *readings);  // names of this server
    }
  }
}

// Marks ticks from the first at or after `from` to the last at or before `to` for recomputation.
void Recorder::Owe(Live& live, telemetry::Millis from, telemetry::Millis to) {
  Derived& derived = live.derived;
  const telemetry::Millis first = std::max(from, Now() - options_.retention.raw) + kDeriveEvery - 1;
  const telemetry::Millis begin = FloorTo(std::max<telemetry::Millis>(0, first), kDeriveEvery);
  const telemetry::Millis end = FloorTo(std::min(to, derived.until), kDeriveEvery) + kDeriveEvery;
  if (begin >= end) return;
  derived.again_from = derived.Again() ? std::min(derived.again_from, begin) : begin;
  derived.again_to = std::max(derived.again_to, end);
  if (past_ != nullptr && past_->id() == live.id && begin < past_->to()) past_.reset();
}

// Round robin over clusters. Null: no ticks are due, or not all of their records are on disk.
Live* Recorder::NextToDerive() {
  std::vector<Live*> due;
  for (const auto& [name, live] : live_) {
    if (live->heads.samples() == 0) live->derived_flushed = live->derived.until;
    const Derived& derived = live->derived;
    if (derived.Again() && derived.again_from <= live->derived_flushed) due.push_back(live.get());
  }
  if (due.empty()) return nullptr;
  const auto next =
      std::ranges::find_if(due, [&](const Live* live) { return live->name > derived_last_; });
  return next == due.end() ? due.front() : *next;
}

// Computes one step of the ticks that are due. True: more is due.
bool Recorder::DeriveAgain() {
  if (failing_) return false;
  const SteadyClock steady;
  const Time begin = steady.Now();
  {
    const std::scoped_lock lock(queue_mutex_);
    if (begin < derive_after_ && !settle_) return false;
  }
  Live* live = nullptr;
  for (const auto& [name, each] : live_) {
    if (past_ != nullptr && past_->id() == each->id) live = each.get();
  }
  if (live == nullptr) live = NextToDerive();
  if (live == nullptr) return false;
  if (!pending_.empty()) return true;  // write its events first
  const Result<bool> done = DerivePast(*live);
  if (done.ok()) {
    derive_after_ = steady.Now() + (steady.Now() - begin) * kRest;
    return true;
  }
  derive_after_ = begin + kRetry;
  past_.reset();
  metrics_.Count(kWriteErrors, {});
  Log(LogLevel::kWarn, "backfill of derived series delayed", {{"error", done.status().ToString()}});
  return false;
}

// One step of the current stretch, or of the next one. True: a stretch is finished and written.
Result<bool> Recorder::DerivePast(Live& live) {
  if (past_ == nullptr) {
    past_ = std::make_unique<Backfill>(archive_, catalogue_, live.id, live.name, stale());
    derived_last_ = live.name;
  }
  if (!past_->begun()) {
    const telemetry::Millis from = live.derived.again_from;
    const telemetry::Millis most =
        std::min(live.derived.again_to, live.derived_flushed + kDeriveEvery);
    NOS_RETURN_IF_ERROR(past_->Begin(from, std::min(most, from + kTicksAtOnce * kDeriveEvery)));
    return false;
  }
  NOS_ASSIGN(const bool done, past_->Step(live.heads));
  if (!done) return false;
  Derived left = live.derived;
  left.again_from = past_->to();
  if (!left.Again()) left.again_from = left.again_to = 0;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(
        store_->RemoveSamples(live.id, kDerivedSubjects, past_->from(), past_->to()));
    NOS_RETURN_IF_ERROR(store_->Flush(live.id, past_->made()));
    return store_->SetDerived(live.id, left);
  };
  NOS_RETURN_IF_ERROR(store_->Transaction(write));
  live.derived = derived_[live.id] = left;
  const bool more = left.Again() && left.again_from <= live.derived_flushed;
  // Next cluster, unless a single cluster continues where the stretch ended.
  if (more && live_.size() == 1) {
    past_->End();
  } else {
    past_.reset();
  }
  return true;
}

}  // namespace nos::telemetryserver
