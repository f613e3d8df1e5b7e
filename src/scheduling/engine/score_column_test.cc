#include "scheduling/engine/score_column.h"

#include <gtest/gtest.h>

#include <random>

namespace nos::scheduling {
namespace {

TEST(ScoreColumnTest, KeepsExtremesWhileScoresChange) {
  constexpr size_t kNodes = 200;  // the last block is not full
  std::mt19937 random(7);
  ScoreColumn scores(kNodes);
  for (int step = 0; step < 2000; ++step) {
    const bool scored = random() % 4 != 0;
    scores.Set(random() % kNodes, scored ? static_cast<int64_t>(random() % 50) - 25 : kUnscored);
    int64_t lowest = std::numeric_limits<int64_t>::max(), highest = kUnscored;
    for (size_t i = 0; i < kNodes; ++i) {
      if (scores[i] == kUnscored) continue;
      lowest = std::min(lowest, scores[i]);
      highest = std::max(highest, scores[i]);
    }
    ASSERT_EQ(scores.Extremes(), std::pair(lowest, highest)) << step;
  }
}

TEST(ScoreColumnTest, NoNodeIsScored) {
  EXPECT_EQ(ScoreColumn(0).Extremes().second, kUnscored);
  EXPECT_EQ(ScoreColumn(65).Extremes().second, kUnscored);
}

}  // namespace
}  // namespace nos::scheduling
