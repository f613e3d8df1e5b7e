#include "telemetryserver/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <ranges>
#include <utility>

#include "base/log.h"
#include "base/millis.h"
#include "codec/gzip.h"
#include "telemetry/envelope_writer.h"
#include "telemetryserver/ingest/node_records.h"
#include "telemetryserver/metrics.h"
#include "telemetryserver/state/shares.h"

namespace nos::telemetryserver {
namespace {

// Over all clusters: limit for an early flush, and limit for accepting samples.
constexpr size_t kManySamples = 25'000'000, kMaxSamples = 100'000'000;
constexpr telemetry::Millis kFlushRetry = 10'000;
// Smaller steps of this server's clock are ignored.
constexpr telemetry::Millis kSetBack = 5000;
constexpr size_t kMaxRestored = 200;  // decisions

telemetry::Millis StaleAfter(const RecorderOptions& options) {
  return 3 * ToMillis(options.report_every);
}

struct NodeCounts {
  int64_t reporting = 0, silent = 0;
};

// Nodes of which an agent has reported; reporting: a record of it is of `since` or later.
NodeCounts CountNodes(const State& state, telemetry::Millis since) {
  NodeCounts counts;
  for (const auto& [name, node] : state.nodes()) {
    if (node.layout_at < 0) continue;
    const bool fresh = std::max(state.FreshAt("node/" + name), node.layout_at) >= since;
    ++(fresh ? counts.reporting : counts.silent);
  }
  return counts;
}

double Real(int64_t count) { return static_cast<double>(count); }

// Returns the envelope as gzip. REQUIRES: the times of its records are corrected to this server's
// clock.
std::string WriteAgain(const telemetry::Envelope& envelope, telemetry::Millis now) {
  std::string records;
  for (const telemetry::Record& record : envelope.records) {
    if (!records.empty()) records += ',';
    records += WriteJson(record.body);
  }
  const telemetry::EnvelopeHead head{
      envelope.cluster,
      envelope.source,
      envelope.boot,
      static_cast<uint64_t>(envelope.sequence),
      Time(std::chrono::milliseconds(std::min(envelope.sent_at, now))),
      static_cast<uint64_t>(envelope.lost)};
  return Gzip(telemetry::WriteEnvelope(head, records), 1);
}

bool IsAboutObjects(const telemetry::Record& record) {
  return std::holds_alternative<telemetry::Layout>(record.what) ||
         std::holds_alternative<telemetry::Object>(record.what) ||
         std::holds_alternative<telemetry::Removed>(record.what) ||
         std::holds_alternative<telemetry::Present>(record.what);
}

void NoteChanges(const Effects& effects, Arrivals& arrivals) {
  for (const Effects::Change& change : effects.changes) {
    const bool of_state = change.kind == "layout" || change.kind == "node" ||
                          change.kind == "pod" || change.kind == "removed";
    if (of_state) arrivals.AddChange(change.at);
  }
}

}  // namespace

Recorder::Recorder(std::unique_ptr<Store> store, const RecorderOptions& options,
                   const gpu::Catalogue& catalogue, const Clock& clock, Metrics& metrics,
                   std::function<void()> changed)
    : options_(options),
      catalogue_(catalogue),
      clock_(clock),
      metrics_(metrics),
      changed_(std::move(changed)),
      store_(std::move(store)),
      archive_(options.store.path, options.retention),
      queue_(options.max_wait),
      health_(metrics),
      positions_(*store_, options.followers, options.event_followers),
      sequences_(options.max_sources, options.max_boots),
      checkpoints_(*store_),
      derived_({clusters_, *store_, archive_, catalogue, clock, metrics}, StaleAfter(options),
               options.retention.raw),
      upkeep_(*store_, options.retention, metrics) {}

Result<std::unique_ptr<Recorder>> Recorder::Open(const RecorderOptions& options,
                                                 const gpu::Catalogue& catalogue,
                                                 const Clock& clock, Metrics& metrics,
                                                 std::function<void()> changed) {
  NOS_ASSIGN(std::unique_ptr<Store> store, Store::Open(options.store));
  std::unique_ptr<Recorder> recorder(
      new Recorder(std::move(store), options, catalogue, clock, metrics, std::move(changed)));
  NOS_RETURN_IF_ERROR(recorder->Load());
  if (!recorder->pending_.empty()) recorder->Round({});
  recorder->thread_ = std::thread([self = recorder.get()] { self->Run(); });
  return recorder;
}

Recorder::~Recorder() {
  queue_.Stop();
  if (thread_.joinable()) thread_.join();
}

telemetry::Millis Recorder::Now() const { return ToMillis(clock_.Now()); }
telemetry::Millis Recorder::stale() const { return StaleAfter(options_); }

// --- At the start ---

Status Recorder::Load() {
  // 1. Restore each cluster: checkpoint and events, then progress of derived series.
  std::map<int64_t, std::string> names;
  NOS_RETURN_IF_ERROR(
      store_->EachCluster([&](int64_t id, const std::string& name) { names[id] = name; }));
  for (const auto& [id, name] : names) {
    Live& live = clusters_.Of(id, name);
    live.opened = Now();
    const auto damaged =
        archive_.StateAt(id, std::numeric_limits<telemetry::Millis>::max(), live.state);
    NOS_RETURN_IF_ERROR(damaged.status().Within(name));
    if (*damaged > 0) {
      Log(LogLevel::kError, "leaving out damaged rows of the history",
          {{"cluster", name}, {"rows", std::to_string(*damaged)}});
    }
    NOS_RETURN_IF_ERROR(RestoreDecisions(live).Within(name));
    NOS_RETURN_IF_ERROR(derived_.Load(live));
    NOS_RETURN_IF_ERROR(checkpoints_.Load(id));
  }
  // 2. Restore sequences, which detect repeated envelopes, and positions of followers.
  NOS_RETURN_IF_ERROR(store_->EachSource(
      [&](int64_t cluster, const std::string& source, const std::string& boot, int64_t sequence) {
        sequences_.Load(names[cluster], source, boot, sequence);
      }));
  NOS_RETURN_IF_ERROR(positions_.Load());
  // 3. Replay the journal: its samples are not flushed, and rows after `applied` are not in the
  //    state. A damaged row becomes a gap: the others must not be lost with it.
  NOS_ASSIGN(const int64_t applied, store_->Applied());
  folded_ = applied;
  NOS_RETURN_IF_ERROR(store_->EachJournaled([&](const JournalRow& row) {
    const Status replayed = Replay(row, applied);
    if (!replayed.ok()) LeaveOut(row, replayed, names[row.cluster]);
  }));
  flushed_at_ = Now();
  return Status::Ok();
}

void Recorder::LeaveOut(const JournalRow& row, const Status& why, const std::string& cluster) {
  Log(LogLevel::kError, "leaving out a damaged envelope of the journal",
      {{"id", std::to_string(row.id)},
       {"cluster", cluster},
       {"source", row.source},
       {"error", why.message()}});
  metrics_.Count(kDamaged, {{"cluster", cluster}});
  folded_ = std::max(folded_, row.id);
  if (cluster.empty()) return;  // its number is damaged: there is no history for a gap
  const telemetry::Millis now = Now();
  JsonObject body = {{"kind", "gap"},
                     {"at", now},
                     {"source", row.source},
                     {"lost", 0},
                     {"why", "an envelope of the journal was damaged"}};
  Pending pending{clusters_.Of(row.cluster, cluster).id, {}, {}};
  pending.effects.changes.push_back({now, "gap", row.source, std::move(body)});
  pending_.push_back(std::move(pending));
}

// Recent decisions determine how long plans take in this cluster.
Status Recorder::RestoreDecisions(Live& live) {
  const EventQuery query{
      0, std::numeric_limits<telemetry::Millis>::max(), {"decision"}, "", kMaxRestored};
  NOS_ASSIGN(std::vector<Event> decisions, archive_.Events(live.id, query));
  for (Event& decision : std::views::reverse(decisions)) {
    const auto record = telemetry::ReadRecord(std::move(decision.body));
    if (record.ok()) live.state.Apply(*record, "");
  }
  return Status::Ok();
}

Status Recorder::Replay(const JournalRow& row, int64_t applied) {
  const bool derived = row.source.empty();
  NOS_ASSIGN(telemetry::Envelope envelope, ReadJournaled(row.body, derived, row.received));
  Live& live = clusters_.Of(row.cluster, envelope.cluster);
  folded_ = std::max(folded_, row.id);
  if (!derived && row.id > applied) {
    Fold(live, envelope);
    return Status::Ok();
  }
  for (const telemetry::Record& record : envelope.records) {
    const auto* readings = std::get_if<telemetry::Readings>(&record.what);
    if (readings == nullptr) continue;
    (void)live.heads.Add(record.at, *readings);  // values were counted before
    if (derived) {
      live.derived.until = std::max(live.derived.until, record.at);
    } else {
      live.state.Apply(record, envelope.source);
    }
  }
  return Status::Ok();
}

// --- From other threads ---

Receipt Recorder::Take(telemetry::Envelope envelope, std::string body) {
  if (Status accepts = clusters_.Accepts(envelope.cluster); !accepts.ok()) {
    return {std::move(accepts), 0};
  }
  return queue_.Put(std::move(envelope), std::move(body));
}

void Recorder::Report() {
  using Values = std::vector<std::pair<MetricLabels, double>>;
  Values shown, pods, waits, nodes;
  clusters_.LookAtAll([&](const Live& live) {
    const std::string& name = live.name;
    const auto [reporting, silent] = CountNodes(live.state, Now() - stale());
    nodes.push_back({{{"cluster", name}, {"state", "reporting"}}, Real(reporting)});
    nodes.push_back({{{"cluster", name}, {"state", "silent"}}, Real(silent)});
    metrics_.Set(kHeadSamples, {{"cluster", name}}, static_cast<double>(live.heads.samples()));
    const Shares shares = SharesOf(live.state, catalogue_, stale());
    const auto share = [&](const char* what, double value) {
      shown.push_back({{{"cluster", name}, {"share", what}}, value});
    };
    share("allocated", shares.allocated);
    share("idle", shares.idle);
    share("free", shares.free);
    share("fragmented", shares.fragmented);
    share("stranded", shares.stranded);
    if (shares.used) share("used", *shares.used);
    pods.push_back({{{"cluster", name}, {"state", "pending"}}, Real(shares.pods_pending)});
    pods.push_back({{{"cluster", name}, {"state", "running"}}, Real(shares.pods_running)});
    if (shares.seconds_to_slice) waits.push_back({{{"cluster", name}}, *shares.seconds_to_slice});
  });
  metrics_.SetAll(kShare, shown);
  metrics_.SetAll(kPods, pods);
  metrics_.SetAll(kNodes, nodes);
  metrics_.SetAll(kToSlice, waits);
}

Status Recorder::Settle() {
  queue_.Settle();
  return health_.Get();
}

// --- The thread ---

void Recorder::Run() {
  while (true) {
    Batch batch;
    // 1. Take queued envelopes, all that arrived during the last commit.
    const bool busy = !health_.failing() && (work_left_ || !pending_.empty());
    if (!queue_.Take(busy, batch)) break;
    const StoreHealth::Round round(health_);
    // 2. Correct the state before new records are compared with its times.
    SetBack();
    // 3. Commit and apply the batch: reporters wait for it.
    if (!batch.empty() || !pending_.empty()) Round(batch);
    // 4. Free memory before slower work.
    FlushIfDue();
    // 5. One bounded step of upkeep and of backfill each: the next batch waits only briefly.
    const bool upkeep_left = upkeep_.Step(Now(), work_left_);
    const bool backfill_left =
        !health_.failing() && derived_.Step(queue_.settling(), !pending_.empty());
    work_left_ = upkeep_left || backfill_left;
    // 6. Answer calls of Settle.
    const bool idle = queue_.empty() && pending_.empty() && !work_left_;
    queue_.EndRound(idle || health_.failing());
  }
  if (const Status flushed = Flush(); !flushed.ok()) {
    // The samples are in the journal.
    Log(LogLevel::kWarn, "failed to write samples, keeping them in the journal",
        {{"error", flushed.ToString()}});
  }
}

// Handles a clock that was set back, for example when a virtual machine resumes with its host's
// time. Records received while the clock was ahead would otherwise be newer than all records until
// that time.
void Recorder::SetBack() {
  const telemetry::Millis now = Now();
  for (const auto& [name, live] : clusters_.all()) {
    if (live->state.now() <= now + kSetBack) continue;
    if (!pending_.empty()) Round({});
    if (!pending_.empty()) return;
    {
      const auto lock = clusters_.Lock();
      live->state.NotAfter(now);
    }
    live->derived.until = std::min(live->derived.until, now);
    live->derived_flushed = std::min(live->derived_flushed, now);
    for (auto& [source, until] : live->reported_until) until = std::min(until, now);
    derived_.Restart();
    // Writes the known state: events with equal times do not show which one was reported last.
    const auto write = [&]() -> Status {
      NOS_RETURN_IF_ERROR(store_->NotAfter(live->id, now));
      return checkpoints_.Write(*live);
    };
    const Status written = store_->Transaction(write);
    health_.Set(written);
    if (!written.ok()) return;
    live->arrivals.AddChange(0);
    Log(LogLevel::kWarn, "found clock of this server set back", {{"cluster", name}});
    checkpoints_.Reset(*live);
  }
}

void Recorder::Round(const Batch& batch) {
  const SteadyClock steady;
  const Time begin = steady.Now();
  // 1. Write to disk, then answer reporters: an acknowledged envelope survives a crash.
  const Status written = Write(batch);
  metrics_.Observe(kCommit, {}, steady.Now() - begin);
  health_.Set(written);
  queue_.Answer(batch, written);
  if (!written.ok()) return;
  // 2. Apply to the state: records become visible only after they are on disk. The next batch
  //    writes the resulting changes.
  for (const auto& waiting : batch) {
    if (waiting->journal == 0) continue;
    Live* live = nullptr;
    {
      const auto lock = clusters_.Lock();
      live = &clusters_.Of(waiting->cluster, waiting->envelope.cluster);
      Fold(*live, waiting->envelope);
    }
    folded_ = waiting->journal;
    std::string derived = derived_.Tick(*live);
    if (!derived.empty()) pending_.push_back({live->id, {}, std::move(derived)});
  }
  if (!batch.empty()) changed_();
}

Status Recorder::Write(const Batch& batch) {
  if (clusters_.samples() > kMaxSamples) {
    return {Code::kExhausted, "samples cannot be written as chunks: look at the log and the disk"};
  }
  int64_t last = folded_;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(WritePending(last));
    NOS_RETURN_IF_ERROR(store_->SetApplied(last));
    NOS_RETURN_IF_ERROR(positions_.Write().status());
    for (const auto& waiting : batch) NOS_RETURN_IF_ERROR(WriteEnvelope(*waiting));
    return Status::Ok();
  };
  if (Status written = store_->Transaction(write); !written.ok()) {
    sequences_.Discard();
    return written;
  }
  sequences_.Commit();
  folded_ = last;
  Written();
  return Status::Ok();
}

// `last`: journal position up to which records are applied.
Status Recorder::WritePending(int64_t& last) {
  for (const Pending& pending : pending_) {
    for (const State::Change& change : pending.effects.changes) {
      const bool late = checkpoints_.IsLate(pending.cluster, change.at);
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
  for (const auto& [name, live] : clusters_.all()) {
    NOS_RETURN_IF_ERROR(checkpoints_.WriteIfDue(*live));
    NOS_RETURN_IF_ERROR(derived_.Write(*live));
  }
  return Status::Ok();
}

// Called when pending changes and checkpoints are on disk.
void Recorder::Written() {
  for (const Pending& pending : pending_) {
    if (pending.effects.changes.empty()) continue;
    for (const auto& [name, live] : clusters_.all()) {
      if (live->id == pending.cluster) NoteChanges(pending.effects, live->arrivals);
    }
  }
  for (const auto& [name, live] : clusters_.all()) {
    derived_.Written(*live);
    checkpoints_.Written(*live);
  }
  pending_.clear();
}

// The journal gets what is left: it is replayed, and exported.
void Recorder::RefuseRecords(Waiting& waiting) {
  const auto found = clusters_.all().find(waiting.envelope.cluster);
  Live* live = found == clusters_.all().end() ? nullptr : found->second.get();
  const size_t before = waiting.envelope.records.size();
  waiting.receipt.refused = TakeRefused(live, Now(), waiting.envelope);
  waiting.receipt.refused_records = before - waiting.envelope.records.size();
  if (!waiting.receipt.refused.empty()) waiting.body = WriteAgain(waiting.envelope, Now());
}

Status Recorder::WriteEnvelope(Waiting& waiting) {
  const telemetry::Envelope& envelope = waiting.envelope;
  const int64_t known = sequences_.Of(envelope);
  waiting.receipt.sequence = std::max(known, envelope.sequence);
  waiting.journal = 0;
  if (envelope.sequence <= known) return Status::Ok();
  if (known == 0) {
    // Rejects only this envelope; the others of the batch are written.
    waiting.receipt.status = sequences_.Admits(envelope);
    if (!waiting.receipt.status.ok()) return Status::Ok();
  }
  NOS_ASSIGN(waiting.cluster, store_->ClusterId(envelope.cluster));
  RefuseRecords(waiting);
  JournalRow row{0,     waiting.cluster, envelope.source, envelope.boot, envelope.sequence,
                 Now(), waiting.body};
  NOS_RETURN_IF_ERROR(store_->Journal(row));
  if (known == 0) {
    NOS_RETURN_IF_ERROR(WriteNewBoot(waiting));
  } else if (envelope.sequence > known + 1 && envelope.lost == 0) {
    NOS_RETURN_IF_ERROR(WriteMissing(waiting, known));
  }
  waiting.journal = row.id;
  sequences_.Set(envelope);
  return Status::Ok();
}

// A source whose spool was recreated has lost the undelivered records of the old one.
Status Recorder::WriteNewBoot(const Waiting& waiting) {
  const telemetry::Envelope& envelope = waiting.envelope;
  if (!sequences_.KnowsSource(envelope)) return Status::Ok();
  const telemetry::Millis now = Now();
  JsonObject body = {{"kind", "gap"},
                     {"at", now},
                     {"source", envelope.source},
                     {"boot", envelope.boot},
                     {"lost", 0}};
  return store_->AddEvent(waiting.cluster, {now, "gap", envelope.source, std::move(body)}, false);
}

// A spool counts what it drops. Other envelopes were acknowledged, and this server does not have
// them any more.
Status Recorder::WriteMissing(const Waiting& waiting, int64_t known) {
  const telemetry::Envelope& envelope = waiting.envelope;
  const telemetry::Millis now = Now();
  JsonObject body = {
      {"kind", "gap"},
      {"at", now},
      {"source", envelope.source},
      {"boot", envelope.boot},
      {"lost", 0},
      {"why", fmt::format("envelopes {} to {} are missing: a backup was restored, or "
                          "the disk lost them",
                          known + 1, envelope.sequence - 1)}};
  return store_->AddEvent(waiting.cluster, {now, "gap", envelope.source, std::move(body)}, false);
}

// Records of one source are ordered as it sent them, even if its clock changed in between.
void Recorder::Fold(Live& live, telemetry::Envelope& envelope) {
  telemetry::Millis& reported_until = live.reported_until[{envelope.source, envelope.boot}];
  const telemetry::Millis oldest = Now() - options_.retention.rollups_5m;
  Pending pending{live.id, {}, {}};
  for (telemetry::Record& record : envelope.records) {
    const auto* readings = std::get_if<telemetry::Readings>(&record.what);
    if (IsAboutObjects(record)) {
      reported_until = std::max(reported_until, record.at);
      telemetry::SetTime(record, reported_until);
    }
    if (readings != nullptr && record.at >= oldest) {
      const size_t left_out = live.heads.Add(record.at, *readings);
      live.arrivals.AddSamples(record.at);
      if (left_out > 0) {
        metrics_.Count(kDroppedValues, {{"cluster", live.name}}, static_cast<double>(left_out));
      }
    }
    Effects effects = live.state.Apply(record, envelope.source);
    derived_.Note(live, record, effects);
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
  checkpoints_.AddEvents(live.id, pending.effects.changes.size());
  if (!pending.effects.changes.empty() || !pending.effects.holds.empty()) {
    pending_.push_back(std::move(pending));
  }
}

void Recorder::FlushIfDue() {
  const size_t samples = clusters_.samples();
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
  health_.Set(flushed);
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
    for (const auto& [name, live] : clusters_.all()) {
      NOS_RETURN_IF_ERROR(store_->Flush(live->id, live->heads));
    }
    NOS_ASSIGN(const int64_t held, positions_.Write());
    return store_->CutJournal(last, held, options_.max_backlog);
  };
  NOS_RETURN_IF_ERROR(store_->Transaction(write));
  folded_ = last;
  Written();
  const auto lock = clusters_.Lock();
  for (const auto& [name, live] : clusters_.all()) {
    const auto unkept = static_cast<double>(store_->TakeUnkept(live->id));
    if (unkept > 0) metrics_.Count(kDroppedValues, {{"cluster", name}}, unkept);
    store_->TakeNumbers(live->id, live->heads);
    live->heads.Clear();
    live->derived_flushed = live->derived.until;
  }
  return Status::Ok();
}

}  // namespace nos::telemetryserver
