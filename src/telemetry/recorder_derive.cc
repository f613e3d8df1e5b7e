// The recorder's series of its own making: each tick as the time passes, and again what something
// came late for.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "base/millis.h"
#include "codec/gzip.h"
#include "telemetry/derived.h"
#include "telemetry/estimate.h"
#include "telemetry/measures.h"
#include "telemetry/moment.h"
#include "telemetry/recorder.h"

namespace nos::telemetry {
namespace {

// Older than this, what comes is a backlog: others' will follow.
constexpr Millis kBacklog = 5 * kMinute;
// Of the thread that takes what reporters tell: at once, and then so many times that nothing.
constexpr Duration kPieceAtMost = std::chrono::milliseconds(200);
constexpr int kRest = 4;
constexpr Duration kRetry = std::chrono::seconds(10);
constexpr size_t kAll = std::numeric_limits<size_t>::max();

}  // namespace

void Recorder::Derive(Live& live) {
  const Millis tick = FloorTo(live.state.now(), kDeriveEvery);
  Derived& derived = live.derived;
  if (tick <= derived.until) return;
  if (tick - derived.until > stale()) Owe(live, derived.until + kDeriveEvery, tick - kDeriveEvery);
  derived.until = tick;
  if (Now() - tick > kBacklog) return Owe(live, tick, tick);
  const std::string text = DerivedEnvelope(live.name, live.state, catalogue_, tick, stale());
  auto envelope = ReadDerivedEnvelope(text);
  if (!envelope.ok()) return;  // it is what ReadDerivedEnvelope reads
  pending_.push_back({live.id, {}, Gzip(text, 1)});
  const auto estimates = EstimateStarts(live.state, catalogue_);
  const std::scoped_lock lock(live_mutex_);
  live.state.SetEstimates(estimates);
  for (const Record& record : envelope->records) {
    if (const auto* readings = std::get_if<Readings>(&record.what)) {
      (void)live.heads.Add(record.at, *readings);  // names of its own
    }
  }
}

// The ticks from the first that is not before `from` to the last that is not after `to`.
void Recorder::Owe(Live& live, Millis from, Millis to) const {
  Derived& derived = live.derived;
  const Millis first = std::max(from, Now() - options_.retention.raw) + kDeriveEvery - 1;
  const Millis begin = FloorTo(std::max<Millis>(0, first), kDeriveEvery);
  const Millis end = FloorTo(std::min(to, derived.until), kDeriveEvery) + kDeriveEvery;
  if (begin >= end) return;
  derived.again_from = derived.Again() ? std::min(derived.again_from, begin) : begin;
  derived.again_to = std::max(derived.again_to, end);
}

// One piece of what is owed, once all that it is made of is on disk. True: there is more.
bool Recorder::DeriveAgain() {
  if (failing_ || !pending_.empty()) return false;
  const SteadyClock steady;
  const Time begin = steady.Now();
  {
    const std::scoped_lock lock(queue_mutex_);
    if (begin < derive_after_ && !settle_) return false;
  }
  for (const auto& [name, live] : live_) {
    const Millis oldest = live->heads.oldest();
    if (!live->derived.Again() || (oldest > 0 && oldest < live->derived.again_to)) continue;
    const Status done = DerivePast(*live);
    derive_after_ = done.ok() ? begin + (steady.Now() - begin) * (kRest + 1) : begin + kRetry;
    if (done.ok()) return true;
    metrics_.Count(kWriteErrors, {});
    Log(LogLevel::kWarn, "trend lines of the past wait", {{"error", done.ToString()}});
    return false;
  }
  return false;
}

Status Recorder::DerivePast(Live& live) {
  const SteadyClock steady;
  const Time begin = steady.Now();
  Derived left = live.derived;
  Millis tick = left.again_from;
  State state;
  Heads made;
  NOS_RETURN_IF_ERROR(archive_.StateAt(live.id, tick, state));
  while (true) {
    NOS_RETURN_IF_ERROR(AddMeasured(*this, live.name, tick, state, kAll));
    const bool heard = tick - state.now() <= stale();  // else nothing is known of that time
    const auto envelope = ReadDerivedEnvelope(
        heard ? DerivedEnvelope(live.name, state, catalogue_, tick, stale()) : "");
    for (size_t i = 0; envelope.ok() && i < envelope->records.size(); ++i) {
      const auto* readings = std::get_if<Readings>(&envelope->records[i].what);
      if (readings != nullptr) (void)made.Add(tick, *readings);
    }
    tick += kDeriveEvery;
    if (tick >= left.again_to || steady.Now() - begin >= kPieceAtMost) break;
    NOS_RETURN_IF_ERROR(archive_.Advance(live.id, tick - kDeriveEvery, tick, state));
  }
  const Millis from = std::exchange(left.again_from, tick);
  if (!left.Again()) left.again_from = left.again_to = 0;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(store_->RemoveSamples(live.id, kDerivedSubjects, from, tick));
    NOS_RETURN_IF_ERROR(store_->Flush(live.id, made));
    return store_->SetDerived(live.id, left);
  };
  NOS_RETURN_IF_ERROR(store_->Transaction(write));
  live.derived = derived_[live.id] = left;
  return Status::Ok();
}

}  // namespace nos::telemetry
