#include "telemetryserver/store/heads.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "telemetry/units.h"

namespace nos::telemetryserver {
namespace {

size_t ColumnOf(Head& head, const std::string& metric) {
  const auto found = std::ranges::find(head.metrics, metric);
  if (found != head.metrics.end()) return static_cast<size_t>(found - head.metrics.begin());
  head.metrics.push_back(metric);
  head.block.columns.emplace_back(head.block.times.size(), kNoSample);
  return head.metrics.size() - 1;
}

void AddOf(const Head& head, const std::string& metric, telemetry::Millis from,
           telemetry::Millis to, std::vector<Sample>& samples) {
  const auto name = std::ranges::find(head.metrics, metric);
  if (name == head.metrics.end()) return;
  const auto& column = head.block.columns[static_cast<size_t>(name - head.metrics.begin())];
  for (size_t i = 0; i < column.size(); ++i) {
    const telemetry::Millis at = head.block.times[i];
    if (at >= from && at < to && !std::isnan(column[i])) samples.push_back({at, column[i]});
  }
}

}  // namespace

size_t Heads::Add(telemetry::Millis at, const telemetry::Readings& readings) {
  if (readings.metrics.empty()) return 0;
  Head& head = heads_[readings.subject];
  if (head.block.times.size() >= kMaxBlockSamples) PutAside(readings.subject, head);
  head.block.times.push_back(at);
  for (auto& column : head.block.columns) column.push_back(kNoSample);
  size_t left_out = 0;
  for (const auto& [metric, value] : readings.metrics) {
    const bool known = std::ranges::find(head.metrics, metric) != head.metrics.end();
    const bool may_be = head.metrics.size() < telemetry::kMaxMetrics &&
                        (telemetry::IsOurs(metric) || others_.contains(metric) ||
                         others_.size() < kMaxClusterMetrics);
    if (!known && !may_be) {
      ++left_out;
      continue;
    }
    if (!known && !telemetry::IsOurs(metric)) others_.insert(metric);
    head.block.columns[ColumnOf(head, metric)].back() = value;
    ++samples_;
  }
  if (oldest_ == 0 || at < oldest_) oldest_ = at;
  return left_out;
}

void Heads::PutAside(const std::string& subject, Head& head) {
  if (full_.size() <= head.filled) full_.emplace_back();
  Head& aside = full_[head.filled++][subject];
  aside.metrics = head.metrics;
  aside.block = std::exchange(head.block, {});
  head.block.columns.resize(head.metrics.size());
}

std::vector<Sample> Heads::Read(const std::string& subject, const std::string& metric,
                                telemetry::Millis from, telemetry::Millis to) const {
  std::vector<Sample> samples;
  for (const HeadsBySubject& full : full_) {
    if (const auto found = full.find(subject); found != full.end()) {
      AddOf(found->second, metric, from, to, samples);
    }
  }
  if (const auto found = heads_.find(subject); found != heads_.end()) {
    AddOf(found->second, metric, from, to, samples);
  }
  std::ranges::stable_sort(samples, {}, &Sample::at);
  return samples;
}

void Heads::Clear() {
  for (auto it = heads_.begin(); it != heads_.end();) {
    Head& head = it->second;
    if (head.block.times.empty()) {
      it = heads_.erase(it);
      continue;
    }
    head.block.times.clear();
    for (auto& column : head.block.columns) column.clear();
    head.filled = 0;
    ++it;
  }
  full_.clear();
  samples_ = 0;
  oldest_ = 0;
}

SampleBlock Ordered(const SampleBlock& block) {
  if (std::ranges::is_sorted(block.times, std::ranges::less_equal())) return block;
  std::vector<size_t> order(block.times.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return block.times[i]; });
  SampleBlock sorted;
  sorted.columns.resize(block.columns.size());
  for (const size_t i : order) {
    const bool again = !sorted.times.empty() && sorted.times.back() == block.times[i];
    if (!again) sorted.times.push_back(block.times[i]);
    for (size_t c = 0; c < block.columns.size(); ++c) {
      if (!again) sorted.columns[c].push_back(kNoSample);
      if (!std::isnan(block.columns[c][i])) sorted.columns[c].back() = block.columns[c][i];
    }
  }
  return sorted;
}

}  // namespace nos::telemetryserver
