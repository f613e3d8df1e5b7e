#include "telemetryserver/levels.h"

#include <algorithm>
#include <cmath>

#include "base/function_ref.h"
#include "codec/bits.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kColumns = 4;  // per metric in a rollup
constexpr size_t kMaxRowMetrics = kMaxBlockColumns / kColumns;

Status Damaged() { return Invalid("database: a row of samples is damaged"); }

// Removes the leading metric IDs.
bool TakeMetrics(std::string_view& bytes, std::vector<int64_t>& metrics) {
  uint64_t count = 0;
  if (!TakeVarint(bytes, count) || count > kMaxBlockColumns) return false;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t metric = 0;
    if (!TakeVarint(bytes, metric)) return false;
    metrics.push_back(static_cast<int64_t>(metric));
  }
  return true;
}

// Visits one metric's columns of a row.
void EachBucket(const SampleBlock& block, size_t first, bool raw,
                FunctionRef<void(const Bucket&)> visit) {
  for (size_t i = 0; i < block.times.size(); ++i) {
    const double value = block.columns[first][i];
    if (std::isnan(value)) continue;
    if (raw) {
      visit({block.times[i], value, value, value, 1});
    } else {
      visit({block.times[i], value, block.columns[first + 1][i], block.columns[first + 2][i],
             block.columns[first + 3][i]});
    }
  }
}

Status EachOf(std::string_view bytes, size_t row_level,
              FunctionRef<void(int64_t metric, const Bucket&)> visit) {
  NOS_ASSIGN(const Row row, DecodeRow(bytes, row_level));
  const size_t columns = row_level == 0 ? 1 : kColumns;
  for (size_t m = 0; m < row.metrics.size(); ++m) {
    EachBucket(row.block, m * columns, row_level == 0,
               [&](const Bucket& bucket) { visit(row.metrics[m], bucket); });
  }
  return Status::Ok();
}

// False for a bucket of a damaged row.
bool IsWhole(const Bucket& bucket) { return bucket.count > 0 && bucket.min <= bucket.max; }

// Rounds to five significant digits: a third of the size of a full mean, whose other digits are
// noise.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double places = 4 - std::floor(std::log10(std::abs(value)));
  if (places < -300 || places > 300) return value;
  const double scale = std::pow(10, std::abs(places));
  return places < 0 ? std::round(value / scale) * scale : std::round(value * scale) / scale;
}

}  // namespace

std::string EncodeRow(const std::vector<int64_t>& metrics, const SampleBlock& block) {
  std::string bytes;
  PutVarint(bytes, metrics.size());
  for (const int64_t metric : metrics) PutVarint(bytes, static_cast<uint64_t>(metric));
  return bytes + EncodeSamples(block);
}

Result<Row> DecodeRow(std::string_view bytes, size_t level) {
  Row row;
  if (!TakeMetrics(bytes, row.metrics)) return Damaged();
  NOS_ASSIGN(row.block, DecodeSamples(bytes));
  const size_t columns = level == 0 ? 1 : kColumns;
  if (row.block.columns.size() != columns * row.metrics.size()) return Damaged();
  return row;
}

Status AppendBuckets(std::string_view bytes, size_t level, int64_t metric, telemetry::Millis from,
                     telemetry::Millis to, std::vector<Bucket>& buckets) {
  const auto keep = [&](const Bucket& bucket) {
    if (bucket.at >= from && bucket.at < to) buckets.push_back(bucket);
  };
  if (level > 0) {
    return EachOf(bytes, level, [&](int64_t other, const Bucket& bucket) {
      if (other == metric) keep(bucket);
    });
  }
  std::vector<int64_t> metrics;
  if (!TakeMetrics(bytes, metrics)) return Damaged();
  const auto found = std::ranges::find(metrics, metric);
  if (found == metrics.end()) return Status::Ok();
  NOS_ASSIGN(const SampleBlock block,
             DecodeSamples(bytes, static_cast<size_t>(found - metrics.begin())));
  EachBucket(block, 0, true, keep);
  return Status::Ok();
}

WindowSums::WindowSums(const Level& level, int64_t window)
    : level_(level), begin_(window * level.window) {}

// Null: the time is outside the window, or the row has the maximum number of metrics.
WindowSums::Sum* WindowSums::SumOf(int64_t metric, telemetry::Millis at) {
  if (at < begin_ || at >= begin_ + level_.window) return nullptr;
  if (sums_.size() >= kMaxRowMetrics && !sums_.contains(metric)) return nullptr;
  auto& sums = sums_[metric];
  sums.resize(static_cast<size_t>(level_.window / level_.step));
  return &sums[static_cast<size_t>((at - begin_) / level_.step)];
}

void WindowSums::Add(int64_t metric, const Bucket& bucket) {
  if (!IsWhole(bucket)) return;
  Sum* found = SumOf(metric, bucket.at);
  if (found == nullptr) return;
  Sum& sum = *found;
  sum.min = sum.count > 0 ? std::min(sum.min, bucket.min) : bucket.min;
  sum.max = sum.count > 0 ? std::max(sum.max, bucket.max) : bucket.max;
  sum.sum += bucket.mean * bucket.count;
  sum.count += bucket.count;
}

Status WindowSums::Add(std::string_view bytes, size_t row_level) {
  return EachOf(bytes, row_level,
                [&](int64_t metric, const Bucket& bucket) { Add(metric, bucket); });
}

Status WindowSums::Merge(std::string_view bytes, size_t row_level) {
  return EachOf(bytes, row_level, [&](int64_t metric, const Bucket& bucket) {
    Sum* sum = IsWhole(bucket) ? SumOf(metric, bucket.at) : nullptr;
    if (sum == nullptr || sum->count >= bucket.count) return;
    *sum = {bucket.mean * bucket.count, bucket.min, bucket.max, bucket.count};
  });
}

std::string WindowSums::Encode() const {
  const auto steps = static_cast<size_t>(level_.window / level_.step);
  SampleBlock block;
  std::vector<size_t> used;
  for (size_t i = 0; i < steps; ++i) {
    if (std::ranges::any_of(sums_, [&](const auto& sums) { return sums.second[i].count > 0; })) {
      used.push_back(i);
      block.times.push_back(begin_ + static_cast<telemetry::Millis>(i) * level_.step);
    }
  }
  std::vector<int64_t> metrics;
  for (const auto& [metric, sums] : sums_) {
    metrics.push_back(metric);
    std::array<std::vector<double>, kColumns> columns;
    for (const size_t i : used) {
      const Sum& sum = sums[i];
      const bool there = sum.count > 0;
      columns[0].push_back(there ? std::clamp(Rounded(sum.sum / sum.count), sum.min, sum.max)
                                 : kNoSample);
      columns[1].push_back(there ? sum.min : kNoSample);
      columns[2].push_back(there ? sum.max : kNoSample);
      columns[3].push_back(there ? sum.count : kNoSample);
    }
    for (auto& column : columns) block.columns.push_back(std::move(column));
  }
  return block.times.empty() ? std::string() : EncodeRow(metrics, block);
}

}  // namespace nos::telemetryserver
