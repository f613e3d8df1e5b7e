#include "telemetryserver/ingest/backfill.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "base/clock.h"
#include "telemetry/envelope.h"
#include "telemetryserver/derived.h"

namespace nos::telemetryserver {
namespace {

constexpr Duration kPieceAtMost = std::chrono::milliseconds(200);
constexpr size_t kSubjectsAtOnce = 500;
constexpr size_t kMaxLayouts = 100'000;  // per stretch
// Metric that the shares are computed from, and a metric that every live GPU reports.
constexpr std::string_view kUsed = "utilization", kAlive = "memory_used";

void AddSubjects(const telemetry::Layout& layout, std::set<std::string>& subjects) {
  for (const telemetry::Gpu& gpu : layout.gpus) {
    subjects.insert("gpu/" + gpu.uuid);
    for (const telemetry::Instance& instance : gpu.instances)
      subjects.insert("instance/" + instance.uuid);
  }
}

}  // namespace

Status Backfill::Begin(telemetry::Millis from, telemetry::Millis to) {
  if (at_ < 0) NOS_RETURN_IF_ERROR(archive_.StateAt(id_, from - kDeriveEvery, state_).status());
  if (at_ < 0) at_ = from - kDeriveEvery;
  from_ = from;
  to_ = to;
  std::set<std::string> subjects;
  for (const auto& [name, node] : state_.nodes()) AddSubjects(node.layout, subjects);
  NOS_ASSIGN(const std::vector<Event> layouts,
             archive_.Events(id_, {from - kDeriveEvery, to, {"layout"}, "", kMaxLayouts}));
  for (const Event& event : layouts) {
    const auto record = telemetry::ReadRecord(event.body);
    const auto* layout = record.ok() ? std::get_if<telemetry::Layout>(&record->what) : nullptr;
    if (layout != nullptr) AddSubjects(*layout, subjects);
  }
  subjects_.assign(subjects.begin(), subjects.end());
  gathered_ = 0;
  samples_.assign(static_cast<size_t>((to - from) / kDeriveEvery), {});
  heard_.assign(samples_.size(), false);
  made_ = Heads();
  return Status::Ok();
}

Result<bool> Backfill::Step(const Heads& heads) {
  const SteadyClock steady;
  const Time begin = steady.Now();
  const auto ends = [&] { return steady.Now() - begin >= kPieceAtMost; };
  while (gathered_ < subjects_.size() && !ends()) NOS_RETURN_IF_ERROR(Gather(heads));
  while (gathered_ == subjects_.size() && at_ + kDeriveEvery < to_ && !ends()) {
    NOS_RETURN_IF_ERROR(Derive(at_ + kDeriveEvery));
  }
  return at_ + kDeriveEvery >= to_;
}

// Reads samples of some subjects, starting at the earliest time that counts for the first tick.
Status Backfill::Gather(const Heads& heads) {
  const size_t first = gathered_;
  gathered_ = std::min(subjects_.size(), gathered_ + kSubjectsAtOnce);
  const std::span<const std::string> some(subjects_.data() + first, gathered_ - first);
  const Range range{from_ - stale_, to_, kDeriveEvery};
  for (const std::string_view metric : {kUsed, kAlive}) {
    const std::string name(metric);
    NOS_RETURN_IF_ERROR(archive_.Raw(id_, some, name, range, [&](size_t i, const Bucket& bucket) {
      Take(first + i, metric, bucket.at, bucket.mean);
    }));
    for (size_t i = 0; i < some.size(); ++i) {
      for (const auto& sample : heads.Read(some[i], name, range.from, range.to)) {
        Take(first + i, metric, sample.at, sample.value);
      }
    }
  }
  return Status::Ok();
}

// A sample counts for the first tick at or after it, and shows for `stale_` that the source is
// alive.
void Backfill::Take(size_t subject, std::string_view metric, telemetry::Millis at, double value) {
  const auto tick = static_cast<size_t>(
      std::max<telemetry::Millis>(0, at - from_ + kDeriveEvery - 1) / kDeriveEvery);
  if (tick >= samples_.size()) return;
  if (metric == kUsed) samples_[tick].push_back({static_cast<uint32_t>(subject), at, value});
  for (size_t t = tick; t < heard_.size(); ++t) {
    if (from_ + static_cast<telemetry::Millis>(t) * kDeriveEvery > at + stale_) break;
    heard_[t] = true;
  }
}

Status Backfill::Derive(telemetry::Millis tick) {
  NOS_RETURN_IF_ERROR(archive_.Advance(id_, at_, tick, state_).status());
  at_ = tick;
  const auto place = static_cast<size_t>((tick - from_) / kDeriveEvery);
  for (const Sample& sample : samples_[place]) {
    state_.Apply(
        {sample.at, "", nullptr,
         telemetry::Readings{
             subjects_[sample.subject], {{std::string(kUsed), sample.value}}, nullptr, nullptr}},
        "");
  }
  samples_[place] = {};
  const bool fresh = tick - state_.now() <= stale_;
  if (!heard_[place] && !fresh) return Status::Ok();  // no report covers that time
  const auto envelope =
      telemetry::ReadDerivedEnvelope(DerivedEnvelope(name_, state_, catalogue_, tick, stale_));
  for (size_t i = 0; envelope.ok() && i < envelope->records.size(); ++i) {
    const auto* readings = std::get_if<telemetry::Readings>(&envelope->records[i].what);
    if (readings != nullptr) (void)made_.Add(tick, *readings);
  }
  return Status::Ok();
}

}  // namespace nos::telemetryserver
