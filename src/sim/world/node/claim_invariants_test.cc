#include "sim/world/node/claim_invariants.h"

#include <gtest/gtest.h>

#include "sim/api_server.h"
#include "sim/world/events/world_clock.h"
#include "sim/world/node/claim_keeper.h"

namespace nos::sim {
namespace {

Json FromText(std::string_view text) { return ParseJson(text).value(); }

class ClaimInvariantsTest : public testing::Test {
 protected:
  ClaimInvariantsTest() {
    pod_.meta.ns = "default";
    pod_.meta.name = "p";
    pod_.meta.uid = "p-uid";
    pod_.node_name = "n";
    pod_.claims = {{"devices", "c", "", false}};
    EXPECT_TRUE(client_
                    .Create(kResourceClaims, "default",
                            FromText(R"({"metadata":{"name":"c"},"spec":{"devices":{
        "requests":[{"name":"r","exactly":{"deviceClassName":"d"}}]}}})"))
                    .ok());
  }
  void Set(const std::string& pool, const std::string& user) {
    const std::string users =
        user.empty() ? "[]" : R"([{"resource":"pods","name":"p","uid":")" + user + R"("}])";
    EXPECT_TRUE(client_
                    .Patch(kResourceClaims, "default", "c", kube::PatchType::kMerge,
                           FromText(R"({"status":{"allocation":{"devices":{"results":[{"request":
        "r","driver":"d.io","pool":")" +
                                    pool + R"(","device":"d"}]}},"reservedFor":)" + users + "}}"),
                           "status")
                    .ok());
  }
  size_t Bound() { return CheckBoundClaims(pod_, client_).size(); }
  size_t Users() {
    const auto list = client_.List(kResourceClaims, "", {});
    EXPECT_TRUE(list.ok());
    if (!list.ok()) return 0;
    return CheckUsers(list->items, {std::make_shared<const cluster::Pod>(pod_)}).size();
  }

  WorldClock clock_{Time(std::chrono::seconds(1'767'225'600))};
  ApiServer api_{clock_};
  kube::Client client_{api_};
  cluster::Pod pod_;
};

TEST_F(ClaimInvariantsTest, BoundPodHasAReservedClaimOnItsNode) {
  EXPECT_EQ(Bound(), 1U) << "not allocated";
  Set("n", "p-uid");
  EXPECT_EQ(Bound(), 0U);
  pod_.node_name = "other";
  EXPECT_EQ(Bound(), 1U);
  pod_.meta.uid = "successor";
  EXPECT_EQ(Bound(), 1U) << "reserved for its predecessor";
}

TEST_F(ClaimInvariantsTest, ClaimWithoutMadeNameIsAProblem) {
  pod_.claims = {{"devices", "", "template", false}};
  EXPECT_EQ(Bound(), 1U);
  pod_.claims[0].unneeded = true;
  EXPECT_EQ(Bound(), 0U);
}

TEST_F(ClaimInvariantsTest, UsersAreRunningPods) {
  EXPECT_EQ(Users(), 0U);
  Set("n", "p-uid");
  EXPECT_EQ(Users(), 0U);
  pod_.phase = "Succeeded";
  EXPECT_EQ(Users(), 1U);
}

TEST_F(ClaimInvariantsTest, DevicesWithoutAUserAreAProblem) {
  Set("n", "");
  EXPECT_EQ(Users(), 1U);
}

}  // namespace
}  // namespace nos::sim
