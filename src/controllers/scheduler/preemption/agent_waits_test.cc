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

  static cluster::Pod Asking() {
    cluster::Pod pod;
    pod.meta.ns = "ml";
    pod.meta.name = "p";
    pod.containers.emplace_back().requests = {{"cpu", Quantity::FromValue(1)},
                                              {"nvidia.com/mig-1g.5gb", Quantity::FromValue(1)}};
    return pod;
  }

  const cluster::Pod pod_ = Asking();
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
  waits_.MarkSilent("a", pod_);
  EXPECT_THAT(waits_.SilentNodes(pod_), ElementsAre("a"));
  SetNode("3g.20gb@0");
  EXPECT_THAT(waits_.SilentNodes(pod_), IsEmpty());
}

TEST_F(AgentWaitsTest, NodeIsNotSilentForGuaranteedPodBecauseABorrowerWaitedInVain) {
  SetNode("");
  engine_.ChangeContext([](cluster::ClusterContext& context) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = "owns";
    quota->namespaces = {"owns"};
    quota->min["cpu"] = Quantity::FromValue(4);
    context.quotas.Set("owns/quota", std::move(quota));
  });
  cluster::Pod guaranteed = pod_;
  guaranteed.meta.ns = "owns";
  waits_.MarkSilent("a", pod_);
  EXPECT_THAT(waits_.SilentNodes(guaranteed), IsEmpty());
  waits_.MarkSilent("a", guaranteed);
  waits_.MarkSilent("a", pod_);
  EXPECT_THAT(waits_.SilentNodes(guaranteed), ElementsAre("a"));
}

}  // namespace
}  // namespace nos::controllers
