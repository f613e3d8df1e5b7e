// The recorder's thread: writes envelopes to disk, then applies them to the state; writes samples
// as chunks.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "base/millis.h"
#include "codec/gzip.h"
#include "telemetryserver/derived.h"
#include "telemetryserver/ingest/metrics.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxBatch = 256;
constexpr size_t kMaxSources = 400'000;  // boots of sources, over all clusters
// Over all clusters: limit for an early flush, and limit for accepting samples.
constexpr size_t kManySamples = 25'000'000, kMaxSamples = 100'000'000;
constexpr telemetry::Millis kFlushRetry = 10'000, kUpkeepEvery = 60'000;
// Smaller steps of this server's clock are ignored.
constexpr telemetry::Millis kSetBack = 5000;
constexpr auto kMaxWait = std::chrono::milliseconds(500);
// A checkpoint costs about as much as events for its whole state.
constexpr size_t kEventsBetweenCheckpoints = 5000;

bool TellsOfThings(const telemetry::Record& record) {
  return std::holds_alternative<telemetry::Layout>(record.what) ||
         std::holds_alternative<telemetry::Object>(record.what) ||
         std::holds_alternative<telemetry::Removed>(record.what) ||
         std::holds_alternative<telemetry::Present>(record.what);
}

// True if an input of the derived series changes.
bool MakesSeries(const State::Effects& effects) {
  return std::ranges::any_of(effects.changes, [](const State::Change& change) {
    if (change.kind == "removed") {
      return !change.object.starts_with("job/") && !change.object.starts_with("queue/") &&
             !change.object.starts_with("pool/");
    }
    return change.kind == "layout" || change.kind == "node" || change.kind == "pod" ||
           change.kind == "quota";
  });
}

}  // namespace

// False: the thread must end and no envelope is queued.
bool Recorder::Await(Batch& batch) {
  std::unique_lock lock(queue_mutex_);
  const bool busy = !failing_ && (upkeep_left_ || !pending_.empty());
  if (!busy) {
    queue_changed_.wait_for(lock, kMaxWait, [&] { return stop_ || settle_ || !queue_.empty(); });
  }
  settling_ = settle_;
  while (!queue_.empty() && batch.size() < kMaxBatch) {
    queued_bytes_ -= queue_.front()->body.size();
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return !stop_ || !batch.empty();
}

// Handles a clock that was set back, for example when a virtual machine resumes with its host's
// time. Records received while the clock was ahead would otherwise be newer than all records until
// that time.
void Recorder::SetBack() {
  const telemetry::Millis now = Now();
  for (const auto& [name, live] : live_) {
    if (live->state.now() <= now + kSetBack) continue;
    if (!pending_.empty()) Round({});
    if (!pending_.empty()) return;
    {
      const std::scoped_lock lock(live_mutex_);
      live->state.NotAfter(now);
    }
    live->derived.until = std::min(live->derived.until, now);
    live->derived_flushed = std::min(live->derived_flushed, now);
    for (auto& [source, told] : live->told_until) told = std::min(told, now);
    past_.reset();
    // Writes the known state: events with equal times do not show which one was reported last.
    const auto write = [&]() -> Status {
      NOS_RETURN_IF_ERROR(store_->NotAfter(live->id, now));
      return store_->AddCheckpoint(live->id, live->state);
    };
    const Status written = store_->Transaction(write);
    SetHealth(written);
    if (!written.ok()) return;
    Log(LogLevel::kWarn, "this server's clock was set back", {{"cluster", name}});
    checkpoint_at_[live->id] = live->state.now();
    events_since_checkpoint_[live->id] = 0;
  }
}

void Recorder::Run() {
  while (true) {
    Batch batch;
    // 1. Take queued envelopes, all that arrived during the last commit.
    if (!Await(batch)) break;
    // 2. Correct the state before new records are compared with its times.
    SetBack();
    // 3. Commit and apply the batch: reporters wait for it.
    if (!batch.empty() || !pending_.empty()) Round(batch);
    // 4. Free memory before slower work.
    FlushIfDue();
    // 5. One bounded step of upkeep and of backfill each, so that the next batch waits only
    // briefly.
    upkeep_left_ = Upkeep();
    upkeep_left_ = DeriveAgain() || upkeep_left_;
    const std::scoped_lock lock(queue_mutex_);
    const bool idle = queue_.empty() && pending_.empty() && !upkeep_left_;
    // A request for Settle during a round is handled by the next round.
    if (settling_ && (idle || failing_)) {
      settle_ = settling_ = false;
      answered_.notify_all();
    }
  }
  if (const Status flushed = Flush(); !flushed.ok()) {
    // The samples are in the journal.
    Log(LogLevel::kWarn, "failed to write samples, keeping them in the journal",
        {{"error", flushed.ToString()}});
  }
}

void Recorder::Round(const Batch& batch) {
  const SteadyClock steady;
  const Time begin = steady.Now();
  // 1. Write to disk, then answer reporters: an acknowledged envelope survives a crash.
  const Status written = Write(batch);
  metrics_.Observe(kCommit, {}, steady.Now() - begin);
  SetHealth(written);
  Answer(batch, written);
  if (!written.ok()) return;
  // 2. Apply to the state: records become visible only after they are on disk. The resulting
  // changes
  //    are written with the next batch.
  for (const auto& waiting : batch) {
    if (waiting->journal == 0) continue;
    Live* live = nullptr;
    {
      const std::scoped_lock lock(live_mutex_);
      live = &LiveOf(waiting->cluster, waiting->envelope.cluster);
      Fold(*live, waiting->envelope);
    }
    folded_ = waiting->journal;
    Derive(*live);
  }
  if (!batch.empty()) changed_();
}

void Recorder::SetHealth(const Status& status) {
  if (!status.ok()) metrics_.Count(kWriteErrors, {});
  failing_ = !status.ok();
  const std::scoped_lock lock(queue_mutex_);
  if (health_.ok() && !status.ok()) {
    Log(LogLevel::kError, "failed to write to the store, rejecting envelopes until it works again",
        {{"error", status.ToString()}});
  } else if (!health_.ok() && status.ok()) {
    Log(LogLevel::kInfo, "resumed storing telemetry");
  }
  health_ = status;
}

Status Recorder::Write(const Batch& batch) {
  size_t samples = 0;
  for (const auto& [name, live] : live_) samples += live->heads.samples();
  if (samples > kMaxSamples) {
    return {Code::kExhausted, "samples cannot be written as chunks: look at the log and the disk"};
  }
  std::map<SourceKey, int64_t> sequences;
  int64_t last = folded_;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(WritePending(last));
    NOS_RETURN_IF_ERROR(store_->SetApplied(last));
    NOS_RETURN_IF_ERROR(WritePositions().status());
    for (const auto& waiting : batch) NOS_RETURN_IF_ERROR(WriteEnvelope(*waiting, sequences));
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(store_->Transaction(write));
  folded_ = last;
  Written();
  for (const auto& [key, sequence] : sequences) {
    if (sequences_.insert_or_assign(key, sequence).second) ++sources_of_[std::get<0>(key)];
  }
  return Status::Ok();
}

// `last`: journal position up to which records are applied.
Status Recorder::WritePending(int64_t& last) {
  for (const Pending& pending : pending_) {
    const auto checkpoint = checkpoint_at_.find(pending.cluster);
    for (const State::Change& change : pending.effects.changes) {
      const bool late = checkpoint != checkpoint_at_.end() && change.at <= checkpoint->second;
      NOS_RETURN_IF_ERROR(store_->AddEvent(pending.cluster, change, late));
    }
    for (const State::Hold& hold : pending.effects.holds) {
      NOS_RETURN_IF_ERROR(store_->AddHold(pending.cluster, hold));
    }
    if (pending.derived.empty()) continue;
    JournalRow row{0, pending.cluster, "", "", 0, Now(), pending.derived};
    NOS_RETURN_IF_ERROR(store_->Journal(row));
    last = std::max(last, row.id);
  }
  for (const auto& [name, live] : live_) {
    NOS_RETURN_IF_ERROR(WriteCheckpoint(*live));
    if (derived_[live->id] == live->derived) continue;
    NOS_RETURN_IF_ERROR(store_->SetDerived(live->id, live->derived));
  }
  return Status::Ok();
}

// Writes a checkpoint when reading the events since the last one would cost more.
Status Recorder::WriteCheckpoint(const Live& live) {
  const auto limit = static_cast<int64_t>(std::max(kEventsBetweenCheckpoints, live.state.size()));
  if (events_since_checkpoint_[live.id] < limit) return Status::Ok();
  return store_->AddCheckpoint(live.id, live.state);
}

// Called when pending changes and checkpoints are on disk.
void Recorder::Written() {
  for (const auto& [name, live] : live_) {
    derived_[live->id] = live->derived;
    const auto limit =
        static_cast<int64_t>(std::max(kEventsBetweenCheckpoints, live->state.size()));
    int64_t& events = events_since_checkpoint_[live->id];
    if (events < limit) continue;
    events = 0;
    checkpoint_at_[live->id] = live->state.now();
  }
  pending_.clear();
}

Status Recorder::WriteEnvelope(Waiting& waiting, std::map<SourceKey, int64_t>& sequences) {
  const telemetry::Envelope& envelope = waiting.envelope;
  const SourceKey key{envelope.cluster, envelope.source, envelope.boot};
  int64_t known = 0;
  if (const auto found = sequences_.find(key); found != sequences_.end()) known = found->second;
  if (const auto found = sequences.find(key); found != sequences.end()) known = found->second;
  waiting.receipt.sequence = std::max(known, envelope.sequence);
  waiting.journal = 0;
  if (envelope.sequence <= known) return Status::Ok();
  if (known == 0 && (sequences_.size() + sequences.size() >= kMaxSources ||
                     sources_of_[envelope.cluster] >= options_.most_sources)) {
    // Rejects only this envelope; the others of the batch are written.
    waiting.receipt.status = {Code::kExhausted, "cluster " + envelope.cluster +
                                                    " has too many sources already: each " +
                                                    "spool that began anew within 90 days is one"};
    return Status::Ok();
  }
  NOS_ASSIGN(waiting.cluster, store_->ClusterId(envelope.cluster));
  JournalRow row{0,     waiting.cluster, envelope.source, envelope.boot, envelope.sequence,
                 Now(), waiting.body};
  NOS_RETURN_IF_ERROR(store_->Journal(row));
  if (known == 0) NOS_RETURN_IF_ERROR(WriteNewBoot(waiting));
  waiting.journal = row.id;
  sequences[key] = envelope.sequence;
  return Status::Ok();
}

// A source whose spool was recreated has lost the undelivered records of the old one.
Status Recorder::WriteNewBoot(const Waiting& waiting) {
  const telemetry::Envelope& envelope = waiting.envelope;
  const auto before = sequences_.lower_bound({envelope.cluster, envelope.source, ""});
  if (before == sequences_.end() || std::get<0>(before->first) != envelope.cluster ||
      std::get<1>(before->first) != envelope.source) {
    return Status::Ok();
  }
  const telemetry::Millis now = Now();
  JsonObject body = {{"kind", "gap"},
                     {"at", now},
                     {"source", envelope.source},
                     {"boot", envelope.boot},
                     {"lost", 0}};
  return store_->AddEvent(waiting.cluster, {now, "gap", envelope.source, std::move(body)}, false);
}

void Recorder::Answer(const Batch& batch, const Status& status) {
  const std::scoped_lock lock(queue_mutex_);
  for (const auto& waiting : batch) {
    if (!status.ok()) waiting->receipt = {status, 0};
    waiting->done = true;
  }
  answered_.notify_all();
}

// --- Into the state ---

// Records of one source are ordered as it sent them, even if its clock changed in between.
void Recorder::Fold(Live& live, telemetry::Envelope& envelope) {
  telemetry::Millis& told_until = live.told_until[{envelope.source, envelope.boot}];
  const telemetry::Millis oldest = Now() - options_.retention.rollups_5m;
  Pending pending{live.id, {}, {}};
  for (telemetry::Record& record : envelope.records) {
    const auto* readings = std::get_if<telemetry::Readings>(&record.what);
    if (TellsOfThings(record)) {
      told_until = std::max(told_until, record.at);
      telemetry::SetTime(record, told_until);
    }
    if (readings != nullptr && record.at >= oldest) {
      const size_t left_out = live.heads.Add(record.at, *readings);
      if (left_out > 0) {
        metrics_.Count(kLeftOut, {{"cluster", live.name}}, static_cast<double>(left_out));
      }
    }
    State::Effects effects = live.state.Apply(record, envelope.source);
    if (live.derived.until == 0)
      live.derived.until = FloorTo(record.at, kDeriveEvery) - kDeriveEvery;
    if (record.at < live.derived.until - stale()) {
      if (readings != nullptr) Owe(live, record.at, record.at + stale());
      if (MakesSeries(effects)) Owe(live, record.at, live.derived.until);
    }
    std::ranges::move(effects.changes, std::back_inserter(pending.effects.changes));
    std::ranges::move(effects.holds, std::back_inserter(pending.effects.holds));
  }
  if (envelope.lost > 0) {
    metrics_.Count(kLost, {{"cluster", live.name}}, static_cast<double>(envelope.lost));
    const telemetry::Millis now = Now();
    JsonObject body = {
        {"kind", "gap"}, {"at", now}, {"source", envelope.source}, {"lost", envelope.lost}};
    pending.effects.changes.push_back({now, "gap", envelope.source, std::move(body)});
  }
  events_since_checkpoint_[live.id] += static_cast<int64_t>(pending.effects.changes.size());
  if (!pending.effects.changes.empty() || !pending.effects.holds.empty()) {
    pending_.push_back(std::move(pending));
  }
}

// --- Followers ---

// Journal position that all followers have reached.
Result<int64_t> Recorder::WritePositions() {
  std::map<std::string, int64_t> positions;
  {
    const std::scoped_lock lock(positions_mutex_);
    positions = positions_;
  }
  int64_t held = std::numeric_limits<int64_t>::max();
  for (const auto& [follower, position] : positions) {
    NOS_RETURN_IF_ERROR(store_->SetPosition(follower, position));
  }
  for (const std::string& follower : options_.followers) {
    held = std::min(held, positions.at(follower));
  }
  return held;
}

// --- Chunks ---

void Recorder::FlushIfDue() {
  size_t samples = 0;
  for (const auto& [name, live] : live_) samples += live->heads.samples();
  const telemetry::Millis now = Now();
  const bool set_back = now < flushed_at_;  // this server's clock
  const bool due =
      now >= flushed_at_ + ToMillis(options_.flush_every) || set_back || samples > kManySamples;
  if (samples == 0) flushed_at_ = now;
  if (samples == 0 || !due) return;
  const SteadyClock steady;
  const Time begin = steady.Now();
  const Status flushed = Flush();
  metrics_.Observe(kFlush, {}, steady.Now() - begin);
  SetHealth(flushed);
  flushed_at_ = flushed.ok() ? now : now - ToMillis(options_.flush_every) + kFlushRetry;
  if (const auto bytes = store_->UsedBytes(); bytes.ok()) {
    metrics_.Set(kStoreBytes, {}, static_cast<double>(*bytes));
  }
}

// REQUIRES: the whole journal is applied. Afterwards the store does not need it any more.
Status Recorder::Flush() {
  int64_t last = folded_;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(WritePending(last));
    NOS_RETURN_IF_ERROR(store_->SetApplied(last));
    for (const auto& [name, live] : live_) {
      NOS_RETURN_IF_ERROR(store_->Flush(live->id, live->heads));
    }
    NOS_ASSIGN(const int64_t held, WritePositions());
    return store_->CutJournal(last, held, options_.most_backlog);
  };
  NOS_RETURN_IF_ERROR(store_->Transaction(write));
  folded_ = last;
  Written();
  const std::scoped_lock lock(live_mutex_);
  for (const auto& [name, live] : live_) {
    const auto unkept = static_cast<double>(store_->TakeUnkept(live->id));
    if (unkept > 0) metrics_.Count(kLeftOut, {{"cluster", name}}, unkept);
    store_->TakeNumbers(live->id, live->heads);
    live->heads.Clear();
    live->derived_flushed = live->derived.until;
  }
  return Status::Ok();
}

// One bounded step of the work that is due. True: more is due.
bool Recorder::Upkeep() {
  const telemetry::Millis now = Now();
  if (!upkeep_left_ && now >= upkeep_at_ && now < upkeep_at_ + kUpkeepEvery) return false;
  upkeep_at_ = now;
  const auto work = [&](const Result<bool>& more, const char* what) {
    if (more.ok()) return *more;
    metrics_.Count(kWriteErrors, {});
    Log(LogLevel::kWarn, what, {{"error", more.status().ToString()}});
    return false;
  };
  return work(store_->RollUp(now), "rollups delayed") ||
         work(store_->Expire(now, options_.retention), "retention delayed");
}

}  // namespace nos::telemetryserver
