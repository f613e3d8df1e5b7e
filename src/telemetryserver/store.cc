#include "telemetryserver/store.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nos::telemetryserver {

Store::Store(Database db, int64_t max_subjects)
    : db_(std::move(db)), subjects_(db_, max_subjects) {}

Result<std::unique_ptr<Store>> Store::Open(const StoreOptions& options) {
  NOS_ASSIGN(Database db, Database::Open(options.path, options.max_bytes));
  return std::unique_ptr<Store>(new Store(std::move(db), options.most_subjects));
}

Status Store::Transaction(FunctionRef<Status()> write) {
  const Status status = db_.Transaction(write);
  if (!status.ok()) {
    subjects_.Discard();
    chunks_.Discard();
  }
  return status;
}

// --- Within a transaction ---

Result<int64_t> Store::ClusterId(const std::string& name) { return clusters_.IdOf(name); }
Status Store::Journal(JournalRow& row) { return journal_.Append(row); }
Status Store::SetApplied(int64_t journal_id) { return journal_.SetApplied(journal_id); }
Status Store::AddEvent(int64_t cluster, const State::Change& change, bool late) {
  return events_.Add(cluster, change, late);
}
Status Store::AddHold(int64_t cluster, const State::Hold& hold) {
  return events_.AddHold(cluster, hold);
}
Status Store::AddCheckpoint(int64_t cluster, const State& state) {
  return events_.AddCheckpoint(cluster, state);
}
Status Store::Flush(int64_t cluster, const Heads& heads) { return chunks_.Write(cluster, heads); }
Status Store::RemoveSamples(int64_t cluster, std::span<const std::string_view> prefixes,
                            telemetry::Millis from, telemetry::Millis to) {
  return chunks_.Remove(cluster, prefixes, from, to);
}
Status Store::SetDerived(int64_t cluster, const Derived& derived) {
  return clusters_.SetDerived(cluster, derived);
}
Status Store::NotAfter(int64_t cluster, telemetry::Millis now) {
  return events_.NotAfter(cluster, now);
}
Status Store::CutJournal(int64_t flushed, int64_t held, int64_t max_bytes) {
  return journal_.Cut(flushed, held, max_bytes);
}
Status Store::SetPosition(const std::string& follower, int64_t id) {
  return journal_.SetPosition(follower, id);
}

int64_t Store::TakeUnkept(int64_t cluster) { return chunks_.TakeUnkept(cluster); }
void Store::TakeNumbers(int64_t cluster, Heads& heads) { chunks_.TakeIds(cluster, heads); }

// --- Each a transaction of its own ---

Result<bool> Store::RollUp(telemetry::Millis now) { return rollups_.Step(now); }

Result<bool> Store::Expire(telemetry::Millis now, const Retention& retention) {
  // 1. Samples, the finest level first. A level is kept until the next one has rolled it up.
  NOS_ASSIGN(const bool raw, chunks_.Expire(now, retention.raw));
  NOS_ASSIGN(const bool fine, rollups_.Expire(1, now, retention.rollups_5m));
  NOS_ASSIGN(const bool coarse, rollups_.Expire(2, now, retention.rollups_1h));
  // 2. History, and sources that stopped reporting.
  std::vector<int64_t> clusters;
  NOS_RETURN_IF_ERROR(EachCluster([&](int64_t id, const std::string&) { clusters.push_back(id); }));
  NOS_ASSIGN(const bool events, events_.Expire(clusters, now - retention.events));
  NOS_ASSIGN(const bool sources, journal_.ExpireSources(now));
  // 3. Subjects whose last samples are gone. No chunk, rollup or head uses their IDs: each flush
  //    removes heads without samples.
  const telemetry::Millis keep =
      std::max({retention.raw, retention.rollups_5m, retention.rollups_1h});
  NOS_ASSIGN(const bool subjects, subjects_.Expire(now, keep));
  return raw || fine || coarse || events || sources || subjects;
}

// --- At the start ---

Status Store::EachCluster(FunctionRef<void(int64_t, const std::string&)> visit) {
  return clusters_.Each(visit);
}
Status Store::EachSource(
    FunctionRef<void(int64_t, const std::string&, const std::string&, int64_t)> visit) {
  return journal_.EachSource(visit);
}
Status Store::EachJournaled(FunctionRef<void(const JournalRow&)> visit) {
  return journal_.EachUnflushed(visit);
}
Result<int64_t> Store::Applied() { return journal_.Applied(); }
Result<int64_t> Store::Position(const std::string& follower) { return journal_.Position(follower); }
Result<int64_t> Store::EventPosition(const std::string& follower) {
  return journal_.EventPosition(follower);
}
Result<Derived> Store::DerivedOf(int64_t cluster) { return clusters_.DerivedOf(cluster); }
Result<telemetry::Millis> Store::LatestCheckpoint(int64_t cluster) {
  return events_.LatestCheckpoint(cluster);
}
Result<int64_t> Store::EventsSinceCheckpoint(int64_t cluster) {
  return events_.CountSinceCheckpoint(cluster);
}
Result<int64_t> Store::UsedBytes() { return db_.UsedBytes(); }

}  // namespace nos::telemetryserver
