#include "controllers/autoscaler/unschedulable_pods.h"

#include <gtest/gtest.h>

namespace nos::controllers {
namespace {

UnschedulablePods ThreePods(planning::Gang gang) {
  UnschedulablePods all;
  for (const char* name : {"a", "b", "c"}) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.name = name;
    all.pods.push_back(std::move(pod));
  }
  all.gangs.push_back(std::move(gang));
  return all;
}

planning::Gang GangOf(std::vector<int> members, int least) {
  planning::Gang gang;
  gang.members = std::move(members);
  gang.least = least;
  return gang;
}

TEST(UnschedulablePodsTest, RenumbersMembersOfGangs) {
  const UnschedulablePods left = ThreePods(GangOf({1, 2}, 2)).Without({0});
  ASSERT_EQ(left.pods.size(), 2u);
  EXPECT_EQ(left.pods[0]->meta.name, "b");
  ASSERT_EQ(left.gangs.size(), 1u);
  EXPECT_EQ(left.gangs[0].members, (std::vector<int>{0, 1}));
  EXPECT_EQ(left.gangs[0].placed, 0);
}

TEST(UnschedulablePodsTest, CountsMembersThatAreGoneAsPlaced) {
  const UnschedulablePods left = ThreePods(GangOf({0, 1, 2}, 3)).Without({1});
  ASSERT_EQ(left.gangs.size(), 1u);
  EXPECT_EQ(left.gangs[0].members, (std::vector<int>{0, 1}));
  EXPECT_EQ(left.gangs[0].placed, 1);
}

TEST(UnschedulablePodsTest, DropsGangsWithEnoughPlacedMembers) {
  const UnschedulablePods left = ThreePods(GangOf({0, 1, 2}, 2)).Without({0, 1});
  EXPECT_EQ(left.pods.size(), 1u);
  EXPECT_TRUE(left.gangs.empty());
}

}  // namespace
}  // namespace nos::controllers
