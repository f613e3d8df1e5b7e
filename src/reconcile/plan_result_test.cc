#include "reconcile/plan_result.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace nos::reconcile {
namespace {

TEST(PlanResultTest, ReadsBackWhatItWrites) {
  const PlanResult result{"8", false, {{0, "3g.20gb@4", "InUse", "1g.5gb@5 is in use by ml/a"}}};
  const auto read = ReadPlanResult(WritePlanResult(result));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->plan, "8");
  EXPECT_FALSE(read->applied);
  EXPECT_EQ(WritePlanResult(*read), WritePlanResult(result));
}

TEST(PlanResultTest, DropsImpossibleAndExcessiveObstacles) {
  std::vector<std::string> obstacles;
  for (const char* gpu : {"-1", "64", "4294967296", "-9223372036854775808"}) {
    obstacles.push_back(std::string(R"({"gpu":)") + gpu + "}");
  }
  for (int i = 0; i < 100'000; ++i) obstacles.emplace_back(R"({"gpu":63})");
  obstacles[4] = R"({"gpu":63,"message":")" + std::string(100'000, 'x') + "\"}";
  const auto read = ReadPlanResult(R"({"obstacles":[)" + Join(obstacles, ",") + "]}");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->obstacles.size(), 512U);
  for (const gpu::Obstacle& obstacle : read->obstacles) {
    EXPECT_EQ(obstacle.gpu, 63);
    EXPECT_LE(obstacle.message.size(), 500U);
  }
}

TEST(PlanResultTest, RejectsInvalidText) {
  for (const char* text : {"", "[]", R"({"obstacles":[[]]})", R"({"obstacles":[{"gpu":0.5}]})",
                           R"({"obstacles":[{"gpu":9223372036854775808}]})"}) {
    EXPECT_EQ(ReadPlanResult(text).status().code(), Code::kInvalid) << text;
  }
}

}  // namespace
}  // namespace nos::reconcile
