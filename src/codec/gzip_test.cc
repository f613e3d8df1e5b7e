#include "codec/gzip.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace nos {
namespace {

std::string Noise(size_t size) {
  Random random(size);
  std::string text;
  for (size_t i = 0; i < size; ++i) text += static_cast<char>(random.Below(256));
  return text;
}

TEST(GzipTest, RoundTrips) {
  for (const std::string& text : {std::string(), std::string(1'000'000, 'x'), Noise(300'000)}) {
    const auto same = Gunzip(Gzip(text, 1), text.size());
    ASSERT_TRUE(same.ok()) << same.status().ToString();
    EXPECT_EQ(*same, text);
  }
}

TEST(GzipTest, RefusesDecompressionBomb) {
  std::string zeros;
  zeros.resize(50'000'000);
  const std::string bomb = Gzip(zeros);
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(Gunzip(bomb, 1'000'000).status().code(), Code::kExhausted);
}

TEST(GzipTest, RefusesDamagedInput) {
  const std::string bytes = Gzip(Noise(1000));
  for (size_t size = 0; size < bytes.size(); size += 13) {
    EXPECT_EQ(Gunzip(bytes.substr(0, size), 5000).status().code(), Code::kInvalid) << size;
  }
  EXPECT_EQ(Gunzip(bytes + bytes, 5000).status().code(), Code::kInvalid);
  EXPECT_EQ(Gunzip("plain text", 5000).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace nos
