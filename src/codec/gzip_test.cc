#include "codec/gzip.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace nos {
namespace {

constexpr size_t kMost = size_t{1} << 20;

TEST(Gzip, ComesBack) {
  Random random(7);
  for (const size_t size : {0, 1, 1000, 70'000, 1 << 20}) {
    std::string text(size, 'a');
    for (size_t i = 0; i < size; i += 3) text[i] = static_cast<char>(random.Next());
    const auto back = Gunzip(Gzip(text), kMost);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_TRUE(*back == text);
  }
  EXPECT_EQ(Gunzip(Gzip("one ") + Gzip("two"), kMost).value(), "one two");
}

TEST(Gzip, EveryDamageIsNoticed) {
  const std::string good = Gzip("a text of some length, with something in it, and in it again");
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(Gunzip(good.substr(0, length), kMost).ok()) << length;
  }
  // The header holds a time and an operating system, which mean nothing here.
  for (size_t at = 10; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(Gunzip(bad, kMost).ok()) << at;
  }
  EXPECT_FALSE(Gunzip(good + "x", kMost).ok());
  EXPECT_FALSE(Gunzip("{}", kMost).ok());
}

TEST(Gzip, WhatWouldBecomeTooLongDoesNot) {
  const std::string bomb = Gzip(std::string(10 << 20, ' '));
  EXPECT_LT(bomb.size(), 20'000u);
  EXPECT_EQ(Gunzip(bomb, kMost).status().code(), Code::kExhausted);
  EXPECT_TRUE(Gunzip(bomb, 10 << 20).ok());
  EXPECT_FALSE(Gunzip(bomb, (10 << 20) - 1).ok());
  EXPECT_FALSE(Gunzip(Gzip("x"), 0).ok());
}

}  // namespace
}  // namespace nos
