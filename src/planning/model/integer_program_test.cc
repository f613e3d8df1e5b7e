#include "planning/model/integer_program.h"

#include <gtest/gtest.h>

namespace nos::planning {
namespace {

// 5 x + 4 y worth, 6 x + 4 y <= 24, x + 2 y <= 6: best at x = 3, y = 1.5; in whole numbers at 4, 0.
IntegerProgram TwoColumns() {
  IntegerProgram program;
  const int x = program.AddColumn(100), y = program.AddColumn(100);
  const int first = program.AddRow(24), second = program.AddRow(6);
  program.Set(first, x, 6);
  program.Set(first, y, 4);
  program.Set(second, x, 1);
  program.Set(second, y, 2);
  return program;
}

TEST(IntegerProgramTest, RelaxesToTheVertexAndItsPrices) {
  const Relaxation relaxed = TwoColumns().Relax({5, 4});
  EXPECT_NEAR(relaxed.best, 21, 1e-9);
  EXPECT_NEAR(relaxed.columns[0], 3, 1e-9);
  EXPECT_NEAR(relaxed.columns[1], 1.5, 1e-9);
  EXPECT_NEAR(relaxed.prices[0], 0.75, 1e-9);
  EXPECT_NEAR(relaxed.prices[1], 0.5, 1e-9);
}

TEST(IntegerProgramTest, FindsBestIntegerSolution) {
  EXPECT_EQ(TwoColumns().Maximise({5, 4}, {.nodes = 100, .gap = 0.01}),
            (std::vector<double>{4, 0}));
}

TEST(IntegerProgramTest, KeepsColumnsWithinTheirLimits) {
  IntegerProgram program;
  program.AddColumn(2);
  program.AddColumn(0);
  EXPECT_EQ(program.Maximise({1, 1}, {.nodes = 100, .gap = 0.01}), (std::vector<double>{2, 0}));
  EXPECT_NEAR(program.Relax({1, 1}).best, 2, 1e-9);
}

TEST(IntegerProgramTest, StopsAtTimeLimit) {
  int asked = 0;
  const auto out_of_time = [&] { return ++asked > 0; };
  TwoColumns().Maximise({5, 4}, {.nodes = 100, .out_of_time = out_of_time});
  EXPECT_GT(asked, 0);
}

TEST(IntegerProgramTest, ReturnsEmptyIfInfeasible) {
  IntegerProgram program;
  const int x = program.AddColumn(1), row = program.AddRow(-5);  // -x <= -5
  program.Set(row, x, -1);
  EXPECT_TRUE(program.Maximise({1}, {.nodes = 100, .gap = 0.01}).empty());
}

}  // namespace
}  // namespace nos::planning
