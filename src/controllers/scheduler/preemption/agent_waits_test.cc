#include "controllers/scheduler/preemption/agent_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/catalogue.h"

namespace nos::controllers {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AgentWaitsTest : public ::testing::Test {
 protected:
  void SetNode(const std::string& layout) {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = "a";
    node->meta.annotations["nos.nebuly.com/status-layout-0"] = layout;
    engine_.SetNode(std::move(node));
  }

  const Time start_{seconds(1000)};
  scheduling::Engine engine_{gpu::Catalogue::Builtin()};
  AgentWaits waits_{engine_, seconds(30)};
};

TEST_F(AgentWaitsTest, WaitEndsAfterLimit) {
  EXPECT_TRUE(waits_.MayWait("ml/p", start_));
  EXPECT_EQ(waits_.NextDue(), start_ + seconds(30));
  EXPECT_TRUE(waits_.MayWait("ml/p", start_ + seconds(29)));
  EXPECT_FALSE(waits_.MayWait("ml/p", start_ + seconds(30)));
  EXPECT_THAT(waits_.TakeExpired(start_ + seconds(30)), ElementsAre("ml/p"));
  EXPECT_EQ(waits_.NextDue(), std::nullopt);
}

TEST_F(AgentWaitsTest, EndedWaitDoesNotExpire) {
  EXPECT_TRUE(waits_.MayWait("ml/p", start_));
  waits_.End("ml/p");
  EXPECT_THAT(waits_.TakeExpired(start_ + seconds(30)), IsEmpty());
}

TEST_F(AgentWaitsTest, RestartBeginsNewWait) {
  EXPECT_TRUE(waits_.MayWait("ml/p", start_));
  waits_.Restart("ml/p");
  EXPECT_TRUE(waits_.MayWait("ml/p", start_ + seconds(40)));
}

TEST_F(AgentWaitsTest, NodeIsSilentUntilAgentReports) {
  SetNode("");
  waits_.MarkSilent("a");
  EXPECT_THAT(waits_.SilentNodes(), ElementsAre("a"));
  SetNode("3g.20gb@0");
  EXPECT_THAT(waits_.SilentNodes(), IsEmpty());
}

}  // namespace
}  // namespace nos::controllers
