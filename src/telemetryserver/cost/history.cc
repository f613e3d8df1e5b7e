#include "telemetryserver/cost/history.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "telemetryserver/cost/meter.h"
#include "telemetryserver/state/readings.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxLayouts = 100'000;  // in an hour
// Metric that every live GPU reports, and the one that shows whether it is used.
const std::string kAlive = "memory_used", kBusy = "utilization";

void AddSubjects(const telemetry::Layout& layout, std::set<std::string>& subjects) {
  for (const telemetry::Gpu& gpu : layout.gpus) {
    subjects.insert(SubjectOf(gpu));
    for (const telemetry::Instance& instance : gpu.instances) subjects.insert(SubjectOf(instance));
  }
}

// Samples that were flushed between reading memory and disk are in both.
void RemoveTwins(std::vector<Bucket>& buckets) {
  std::ranges::stable_sort(buckets, {}, &Bucket::at);
  const auto again = std::ranges::unique(buckets, [](const Bucket& a, const Bucket& b) {
    return a.at == b.at && a.count == 1 && b.count == 1;
  });
  buckets.erase(again.begin(), again.end());
}

}  // namespace

size_t History::gpus() const {
  size_t gpus = 0;
  if (state_ == nullptr) return gpus;
  for (const auto& [name, node] : state_->nodes()) gpus += node.layout.gpus.size();
  return gpus;
}

Result<bool> History::Bill(telemetry::Millis from, telemetry::Millis to, Ledger& ledger) {
  Archive& archive = uses_.recorder.archive();
  if (at_ != from) {
    state_ = std::make_unique<State>();
    at_ = -1;
    NOS_RETURN_IF_ERROR(archive.StateAt(id_, from, *state_).status());
    at_ = from;
  }
  Measured measured;
  // The window before may show that a node is alive.
  NOS_ASSIGN(const bool settled, Measure(FloorTo(from, kCostWindow) - kCostWindow, to, measured));
  Meter meter(*state_, uses_.prices, uses_.catalogue, measured,
              {from, uses_.recorder.Now(), uses_.recorder.stale()});
  at_ = -1;  // until the events are applied
  NOS_RETURN_IF_ERROR(
      archive.EachChange(id_, from, to, [&](const Event& event) { meter.Apply(event); }));
  ledger.Add(std::move(meter).Until(to));
  at_ = to;
  return settled;
}

Result<std::vector<std::string>> History::SubjectsIn(telemetry::Millis from, telemetry::Millis to) {
  std::set<std::string> subjects;
  for (const auto& [name, node] : state_->nodes()) AddSubjects(node.layout, subjects);
  const EventQuery query{from, to, {"layout"}, "", kMaxLayouts};
  NOS_ASSIGN(const std::vector<Event> layouts, uses_.recorder.archive().Events(id_, query));
  for (const Event& event : layouts) {
    const auto record = telemetry::ReadRecord(event.body);
    const auto* layout = record.ok() ? std::get_if<telemetry::Layout>(&record->what) : nullptr;
    if (layout != nullptr) AddSubjects(*layout, subjects);
  }
  return std::vector<std::string>(subjects.begin(), subjects.end());
}

Result<bool> History::Measure(telemetry::Millis from, telemetry::Millis to, Measured& measured) {
  from = std::max<telemetry::Millis>(0, from);
  to = FloorTo(to + kCostWindow - 1, kCostWindow);
  NOS_ASSIGN(const std::vector<std::string> subjects, SubjectsIn(from, to));
  std::vector<std::vector<Bucket>> busy(subjects.size());
  // Memory first: samples that are flushed meanwhile are then in one of both.
  uses_.recorder.Look(cluster_, [&](const Live& live) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      for (const Sample& sample : live.heads.Read(subjects[i], kBusy, from, to)) {
        busy[i].push_back({sample.at, sample.value, sample.value, sample.value, 1});
      }
      for (const Sample& sample : live.heads.Read(subjects[i], kAlive, from, to)) {
        measured.AddReport(subjects[i], sample.at, 0);
      }
    }
  });
  Archive& archive = uses_.recorder.archive();
  const telemetry::Millis now = uses_.recorder.Now();
  const Range range{from, to, kCostWindow};
  NOS_ASSIGN(const bool alive_settled,
             archive.Means(id_, subjects, kAlive, range, now,
                           [&](size_t i, const Bucket& bucket, telemetry::Millis step) {
                             measured.AddReport(subjects[i], bucket.at, step);
                           }));
  NOS_ASSIGN(const bool busy_settled,
             archive.Means(id_, subjects, kBusy, range, now,
                           [&](size_t i, const Bucket& bucket, telemetry::Millis step) {
                             if (step == 0) {
                               busy[i].push_back(bucket);
                             } else {
                               measured.Add(subjects[i], bucket, step);
                             }
                           }));
  for (size_t i = 0; i < subjects.size(); ++i) {
    RemoveTwins(busy[i]);
    for (const Bucket& bucket : busy[i]) measured.Add(subjects[i], bucket, 0);
  }
  return alive_settled && busy_settled;
}

}  // namespace nos::telemetryserver
