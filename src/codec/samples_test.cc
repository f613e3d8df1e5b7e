#include "codec/samples.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace nos {
namespace {

void ExpectSame(const SampleBlock& a, const SampleBlock& b) {
  EXPECT_EQ(a.times, b.times);
  ASSERT_EQ(a.columns.size(), b.columns.size());
  for (size_t c = 0; c < a.columns.size(); ++c) {
    ASSERT_EQ(a.columns[c].size(), b.columns[c].size());
    for (size_t i = 0; i < a.columns[c].size(); ++i) {
      const double x = a.columns[c][i], y = b.columns[c][i];
      EXPECT_TRUE((std::isnan(x) && std::isnan(y)) ||
                  std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y))
          << "column " << c << " sample " << i << ": " << x << " is " << y;
    }
  }
}

// A value of the given style, following `before`.
double ValueOf(Random& random, uint64_t style, double before) {
  switch (style) {
    case 0:
      return 40960;
    case 1:
      return static_cast<double>(random.Below(101)) / 100;
    case 2:
      return std::round((before + random.Uniform() - 0.5) * 1000) / 1000;
    case 3:
      return random.Uniform();
    case 4:
      return std::bit_cast<double>(random.Next());  // infinities, denormals, NaNs
    case 5:
      return random.Chance(0.3) ? kNoSample : 12.25;
    case 6:
      return kNoSample;
    default:
      return random.Chance(0.1) ? static_cast<double>(random.Below(1U << 20)) : before;
  }
}

SampleBlock RandomBlock(Random& random) {
  SampleBlock block;
  const size_t count = 1 + random.Below(random.Chance(0.1) ? 300 : 20);
  int64_t at = static_cast<int64_t>(random.Next() >> 20);
  const uint64_t kind = random.Below(3);
  for (size_t i = 0; i < count; ++i) {
    if (kind == 0) at += 10'000;
    if (kind == 1) at += 9'990 + static_cast<int64_t>(random.Below(20));
    if (kind == 2) at = static_cast<int64_t>(random.Next());
    block.times.push_back(at);
  }
  block.columns.resize(random.Below(6));
  for (auto& column : block.columns) {
    const uint64_t style = random.Below(8);
    double value = 0;
    for (size_t i = 0; i < count; ++i) column.push_back(value = ValueOf(random, style, value));
  }
  return block;
}

TEST(SamplesTest, RoundTripsRandomBlocks) {
  Random random(1);
  for (int run = 0; run < 2000; ++run) {
    const SampleBlock block = RandomBlock(random);
    const std::string bytes = EncodeSamples(block);
    const auto same = DecodeSamples(bytes);
    ASSERT_TRUE(same.ok()) << "run " << run << ": " << same.status().ToString();
    ExpectSame(block, *same);
    for (size_t c = 0; c < block.columns.size(); ++c) {
      const auto one = DecodeSamples(bytes, c);
      ASSERT_TRUE(one.ok());
      ExpectSame({block.times, {block.columns[c]}}, *one);
    }
    EXPECT_EQ(DecodeSamples(bytes, block.columns.size()).status().code(), Code::kNotFound);
  }
}

TEST(SamplesTest, RoundTripsExtremeValues) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  const double endless = std::numeric_limits<double>::infinity();
  const SampleBlock block{
      {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), 0, -1},
      {{0.0, -0.0, tiny, -huge}, {endless, -endless, 1, 2}, {9007199254740991, -1, 0.1, 0.3}}};
  const auto same = DecodeSamples(EncodeSamples(block));
  ASSERT_TRUE(same.ok());
  ExpectSame(block, *same);
}

TEST(SamplesTest, CompressesGpuMetrics) {
  Random random(7);
  SampleBlock block;
  block.columns.resize(5);
  double power = 250, memory = 12000;
  for (int i = 0; i < 60; ++i) {
    block.times.push_back(1'763'760'000'000 + int64_t{i} * 10'000 +
                          static_cast<int64_t>(random.Below(9)));
    if (random.Chance(0.05)) memory = static_cast<double>(random.Below(40960));
    power += std::round((random.Uniform() - 0.5) * 20);
    block.columns[0].push_back(static_cast<double>(60 + random.Below(30)) / 100);
    block.columns[1].push_back(memory);
    block.columns[2].push_back(40960);
    block.columns[3].push_back(power + static_cast<double>(random.Below(1000)) / 1000);
    block.columns[4].push_back(static_cast<double>(55 + random.Below(3)));
  }
  const double per_sample = static_cast<double>(EncodeSamples(block).size()) / 300;
  EXPECT_LT(per_sample, 1.5) << "bytes a sample";
  RecordProperty("bytes_per_sample", std::to_string(per_sample));
}

TEST(SamplesTest, RefusesDamagedBlocks) {
  Random random(3);
  EXPECT_FALSE(DecodeSamples("").ok());
  for (int run = 0; run < 300; ++run) {
    const SampleBlock block = RandomBlock(random);
    const std::string bytes = EncodeSamples(block);
    for (size_t size = 0; size < bytes.size(); size += 1 + random.Below(7)) {
      EXPECT_FALSE(DecodeSamples(bytes.substr(0, size)).ok()) << "cut at " << size;
    }
    EXPECT_FALSE(DecodeSamples(bytes + "x").ok());
    std::string flipped = bytes;
    char& one = flipped[random.Below(bytes.size())];
    one = static_cast<char>(static_cast<unsigned char>(one) ^ (1 + random.Below(255)));
    const auto read = DecodeSamples(flipped);  // yields another block or an error
    EXPECT_LE(read.ok() ? read->times.size() : 0, kMaxBlockSamples);
  }
}

}  // namespace
}  // namespace nos
