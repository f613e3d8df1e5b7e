// Nodes whose GPUs are for ResourceClaims.
#include "agent/claim_interface.h"
#include "agent/loop/fixture_test.h"

namespace nos::agent {
namespace {

class FakeClaims final : public ClaimInterface {
 public:
  void Use(bool use, const std::string& node_uid) override {
    used = use;
    uid = node_uid;
    if (use) released = false;
  }
  bool Released() const override { return released; }

  bool used = false, released = true;
  std::string uid;
};

class ClaimNodeTest : public AgentTest {
 protected:
  ClaimNodeTest() { Start(); }
  void Start() {
    AgentExtras extras{&health_, &metrics_};
    extras.claims = &claims_;
    runner_.reset();
    agent_ =
        std::make_unique<Agent>(config_, kNode, *catalogue_, gpus_, kubelet_, kubelet_, extras);
    runner_ = std::make_unique<reconcile::Runner>(*agent_, api_, reconcile::ForNode(kNode));
  }
  void Interface(const std::string& value) {
    Json node = *api_.Find("nodes", kNode);
    JsonObject& labels = MakeObject(node, "metadata", "labels");
    labels["nos.nebuly.com/device-interface"] = value;
    api_.Put(node);
  }

  FakeClaims claims_;
};

TEST_F(ClaimNodeTest, OffersNothingToTheDevicePlugin) {
  Apply("1", {{0, "1g.5gb@0,1g.5gb@1"}});
  ASSERT_EQ(kubelet_.offer().size(), 2U);
  EXPECT_FALSE(claims_.used);
  Interface("dra");
  Run();
  EXPECT_TRUE(claims_.used);
  EXPECT_FALSE(claims_.uid.empty());
  EXPECT_TRUE(kubelet_.offer().empty());
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  EXPECT_EQ(gpus_.Truth(0).size(), 2U) << "they may serve claims";
  Plan("2", {{0, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(gpus_.Truth(0).size(), 2U) << "claims decide about instances";
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(ClaimNodeTest, WaitsForPodsThatUseTheDevicePlugin) {
  Apply("1", {{0, "1g.5gb@0,1g.5gb@1"}});
  const std::string device = kubelet_.offer()[0].device_id;
  Hold("p", "mig-1g.5gb", device);
  Interface("dra");
  Run();
  EXPECT_FALSE(claims_.used);
  EXPECT_TRUE(kubelet_.Offers(device)) << "its pod may have to be admitted again";
  EXPECT_EQ(kubelet_.offer().size(), 1U) << "nobody else gets one";
  End("p");
  Run();
  EXPECT_TRUE(claims_.used);
  EXPECT_TRUE(kubelet_.offer().empty());
  // From now on other pods do not end it, also after a restart of the agent.
  Bind("q", "1g.5gb");
  Start();
  Run();
  EXPECT_TRUE(claims_.used);
}

TEST_F(ClaimNodeTest, WaitsForClaimsBeforeItOffersDevicesAgain) {
  Apply("1", {{0, "1g.5gb@0"}});
  Interface("dra");
  Run();
  ASSERT_TRUE(claims_.used);
  Interface("device-plugin");
  Plan("2", {{0, "7g.40gb@0"}});
  Run();
  EXPECT_FALSE(claims_.used);
  EXPECT_TRUE(kubelet_.offer().empty());
  EXPECT_EQ(destroyed_, 0);
  claims_.released = true;
  Run(seconds(60));
  ASSERT_EQ(kubelet_.offer().size(), 1U);
  EXPECT_EQ(kubelet_.offer()[0].resource, "nvidia.com/mig-7g.40gb");
}

// A kubelet would give it to the next pod that asks for such a device.
TEST_F(ClaimNodeTest, NeverOffersInstancesOfClaims) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  claims_.released = false;  // as after a restart
  for (const char* interface : {"dra", "device-plugin"}) {
    Interface(interface);
    Start();
    size_t most = 0;
    kubelet_.on_offer = [&] { most = std::max(most, kubelet_.offer().size()); };
    Run();
    EXPECT_EQ(most, 0U) << interface;
    EXPECT_EQ(claims_.used, std::string_view(interface) == "dra");
  }
  kubelet_.on_offer = nullptr;
}

// A claim is being prepared there: the other half of the instance follows.
TEST_F(ClaimNodeTest, LeavesIncompleteInstancesAlone) {
  Interface("dra");
  Run();
  fault_ = [](const device::SimAttempt&) { return device::SimFault::kCrashBetween; };
  EXPECT_FALSE(gpus_.Create(0, "1g.5gb", 0).ok());
  Run();
  EXPECT_EQ(gpus_.Truth(0).size(), 1U);
}

}  // namespace
}  // namespace nos::agent
