#include "telemetryserver/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ranges>

#include "base/millis.h"
#include "codec/gzip.h"
#include "telemetryserver/ingest/metrics.h"
#include "telemetryserver/state/shares.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxQueued = 1000;
constexpr size_t kMaxQueuedBytes = size_t{256} << 20;
constexpr size_t kMaxClusters = 100;
constexpr size_t kMaxRecalled = 200;  // decisions

double Real(int64_t count) { return static_cast<double>(count); }

}  // namespace

Recorder::Recorder(const RecorderOptions& options, const gpu::Catalogue& catalogue,
                   const Clock& clock, Metrics& metrics, std::function<void()> changed)
    : options_(options),
      catalogue_(catalogue),
      clock_(clock),
      metrics_(metrics),
      changed_(std::move(changed)),
      archive_(options.store.path, options.retention) {}

Result<std::unique_ptr<Recorder>> Recorder::Open(const RecorderOptions& options,
                                                 const gpu::Catalogue& catalogue,
                                                 const Clock& clock, Metrics& metrics,
                                                 std::function<void()> changed) {
  std::unique_ptr<Recorder> recorder(
      new Recorder(options, catalogue, clock, metrics, std::move(changed)));
  NOS_ASSIGN(recorder->store_, Store::Open(options.store));
  NOS_RETURN_IF_ERROR(recorder->Load());
  if (!recorder->pending_.empty()) recorder->Round({});
  recorder->thread_ = std::thread([self = recorder.get()] { self->Run(); });
  return recorder;
}

Recorder::~Recorder() {
  {
    const std::scoped_lock lock(queue_mutex_);
    stop_ = true;
    queue_changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

telemetry::Millis Recorder::Now() const { return ToMillis(clock_.Now()); }
telemetry::Millis Recorder::stale() const { return 3 * ToMillis(options_.report_every); }

Live& Recorder::LiveOf(int64_t id, const std::string& name) {
  std::unique_ptr<Live>& live = live_[name];
  if (live == nullptr) {
    live = std::make_unique<Live>();
    live->id = id;
    live->name = name;
  }
  return *live;
}

// --- At the start ---

Status Recorder::Load() {
  // 1. Restore each cluster: checkpoint and events, then progress of derived series.
  std::map<int64_t, std::string> names;
  NOS_RETURN_IF_ERROR(
      store_->EachCluster([&](int64_t id, const std::string& name) { names[id] = name; }));
  for (const auto& [id, name] : names) {
    Live& live = LiveOf(id, name);
    NOS_RETURN_IF_ERROR(
        archive_.StateAt(id, std::numeric_limits<telemetry::Millis>::max(), live.state)
            .Within(name));
    NOS_RETURN_IF_ERROR(RecallDecisions(live).Within(name));
    NOS_ASSIGN(live.derived, store_->DerivedOf(id));
    derived_[id] = live.derived;
    NOS_ASSIGN(checkpoint_at_[id], store_->LatestCheckpoint(id));
    NOS_ASSIGN(events_since_checkpoint_[id], store_->EventsSinceCheckpoint(id));
  }
  // 2. Restore sequences, which detect repeated envelopes, and positions of followers.
  NOS_RETURN_IF_ERROR(store_->EachSource(
      [&](int64_t cluster, const std::string& source, const std::string& boot, int64_t sequence) {
        sequences_[{names[cluster], source, boot}] = sequence;
        ++sources_of_[names[cluster]];
      }));
  for (const std::string& follower : options_.followers) {
    NOS_ASSIGN(positions_[follower], store_->Position(follower));
  }
  for (const std::string& follower : options_.event_followers) {
    NOS_ASSIGN(positions_[follower], store_->EventPosition(follower));
  }
  // 3. Replay the journal: its samples are not flushed, and rows after `applied` are not in the
  //    state. A damaged row fails the start.
  NOS_ASSIGN(const int64_t applied, store_->Applied());
  folded_ = applied;
  Status damaged;
  NOS_RETURN_IF_ERROR(store_->EachJournaled([&](const JournalRow& row) {
    const Status replayed = Replay(row, applied);
    if (!replayed.ok()) damaged = replayed;
  }));
  flushed_at_ = Now();
  return damaged;
}

// Recent decisions determine how long plans take in this cluster.
Status Recorder::RecallDecisions(Live& live) {
  const EventQuery query{
      0, std::numeric_limits<telemetry::Millis>::max(), {"decision"}, "", kMaxRecalled};
  NOS_ASSIGN(std::vector<Event> decisions, archive_.Events(live.id, query));
  for (Event& decision : std::views::reverse(decisions)) {
    const auto record = telemetry::ReadRecord(std::move(decision.body));
    if (record.ok()) live.state.Apply(*record, "");
  }
  return Status::Ok();
}

Status Recorder::Replay(const JournalRow& row, int64_t applied) {
  NOS_ASSIGN(const std::string text, Gunzip(row.body, telemetry::kMaxEnvelopeBytes));
  const bool derived = row.source.empty();
  NOS_ASSIGN(telemetry::Envelope envelope, derived ? telemetry::ReadDerivedEnvelope(text)
                                                   : telemetry::ReadEnvelope(text, row.received));
  Live& live = LiveOf(row.cluster, envelope.cluster);
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

Recorder::Receipt Recorder::Take(telemetry::Envelope envelope, std::string body) {
  const auto waiting = std::make_shared<Waiting>();
  waiting->envelope = std::move(envelope);
  waiting->body = std::move(body);
  {
    const std::shared_lock lock(live_mutex_);
    if (live_.size() >= kMaxClusters && !live_.contains(waiting->envelope.cluster)) {
      return {Invalid(fmt::format("there are {} clusters already", live_.size())), 0};
    }
  }
  std::unique_lock lock(queue_mutex_);
  if (stop_) return {Status(Code::kUnavailable, "the server ends"), 0};
  if (queue_.size() >= kMaxQueued || queued_bytes_ > kMaxQueuedBytes) {
    return {Status(Code::kExhausted, "too many envelopes wait to be written: come again"), 0};
  }
  queued_bytes_ += waiting->body.size();
  queue_.push_back(waiting);
  queue_changed_.notify_one();
  answered_.wait(lock, [&] { return waiting->done; });
  return waiting->receipt;
}

bool Recorder::Look(const std::string& cluster, FunctionRef<void(const Live&)> visit) const {
  const std::shared_lock lock(live_mutex_);
  const auto found = live_.find(cluster);
  if (found == live_.end()) return false;
  visit(*found->second);
  return true;
}

std::vector<std::string> Recorder::Clusters() const {
  const std::shared_lock lock(live_mutex_);
  std::vector<std::string> names;
  names.reserve(live_.size());
  for (const auto& [name, live] : live_) names.push_back(name);
  return names;
}

Status Recorder::Health() const {
  const std::scoped_lock lock(queue_mutex_);
  return health_;
}

void Recorder::Report() {
  using Values = std::vector<std::pair<MetricLabels, double>>;
  Values shown, pods, waits;
  const std::shared_lock lock(live_mutex_);
  for (const auto& [name, live] : live_) {
    metrics_.Set(kHeadSamples, {{"cluster", name}}, static_cast<double>(live->heads.samples()));
    const Shares shares = SharesOf(live->state, catalogue_, stale());
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
  }
  metrics_.SetAll(kShare, shown);
  metrics_.SetAll(kPods, pods);
  metrics_.SetAll(kToSlice, waits);
}

int64_t Recorder::PositionOf(const std::string& follower) const {
  const std::scoped_lock lock(positions_mutex_);
  return positions_.at(follower);
}

void Recorder::Advance(const std::string& follower, int64_t id) {
  const std::scoped_lock lock(positions_mutex_);
  positions_.at(follower) = id;
}

Status Recorder::Settle() {
  std::unique_lock lock(queue_mutex_);
  settle_ = true;
  queue_changed_.notify_one();
  answered_.wait(lock, [&] { return !settle_; });
  return health_;
}

}  // namespace nos::telemetryserver
