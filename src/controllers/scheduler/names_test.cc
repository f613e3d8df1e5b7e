// Pods with arbitrary resource names must not harm other pods.
#include <string>

#include "controllers/scheduler/fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerNamesTest : public SchedulerFixture {
 protected:
  // A pod that requests `resources` resources that no node has.
  void Greedy(const std::string& name, int resources, const std::string& amount) {
    PutPod(name, "cpu", "100m", 0);
    ChangePod(name, [&](Json& pod) {
      Json& container = pod.at("spec").at("containers").at(0);
      for (int i = 0; i < resources; ++i) {
        const std::string resource = "a.b/" + name + std::to_string(i);
        MakeObject(container, "resources", "limits")[resource] = amount;
      }
    });
  }
};

TEST_F(SchedulerNamesTest, SchedulesResourceThatNodeOffersLater) {
  CpuNode("n", "4");
  Greedy("greedy", 6000, "1");
  Run();
  PutPod("late", "amd.com/fpga", "1", 0);
  Run();
  ASSERT_EQ(NodeOf("late"), "");
  EXPECT_TRUE(Why("late").starts_with("0/1 nodes are available: 1 Insufficient amd.com/fpga."))
      << Why("late");
  UpdateNode("n", {}, {{"amd.com/fpga", "4"}});
  clock_.Advance(seconds(30));
  Run();
  EXPECT_EQ(NodeOf("late"), "n") << Why("late");
}

TEST_F(SchedulerNamesTest, AcceptsZeroRequestsOfUnknownResources) {
  CpuNode("n", "4");
  Greedy("modest", 6000, "0");
  Run();
  EXPECT_EQ(NodeOf("modest"), "n");
}

}  // namespace
}  // namespace nos::controllers
