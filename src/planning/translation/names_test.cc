#include "planning/names.h"

#include <gtest/gtest.h>

namespace nos::planning {
namespace {

TEST(NamesTest, FindsObjectivesByName) {
  for (const Objective objective : {Objective::kPods, Objective::kCompute, Objective::kMemory}) {
    EXPECT_EQ(FindObjective(NameOf(objective)), objective);
  }
  EXPECT_EQ(FindObjective("money"), std::nullopt);
}

}  // namespace
}  // namespace nos::planning
