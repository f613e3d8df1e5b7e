#include "sim/world/node/claim_keeper.h"

#include <gtest/gtest.h>

#include "sim/api_server.h"
#include "sim/world/events/world_clock.h"

namespace nos::sim {
namespace {

Json FromText(std::string_view text) { return ParseJson(text).value(); }

class ClaimKeeperTest : public testing::Test {
 protected:
  ClaimKeeperTest() {
    EXPECT_TRUE(
        client_
            .Create(kClaimTemplates, "default", FromText(R"({"metadata":{"name":"t"},"spec":{
        "metadata":{"labels":{"a":"b"}},"spec":{"devices":{"requests":[
        {"name":"gpu","exactly":{"deviceClassName":"gpu.example.com"}}]}}}})"))
            .ok());
  }
  void AddPod(const std::string& name, const std::string& claim, const std::string& more = "") {
    const auto pod = client_.Create(
        kube::kPods, "default",
        FromText(R"({"metadata":{"name":")" + name +
                 R"("},"spec":{"containers":[{"name":"c","image":"i"}],"resourceClaims":[
                    {"name":"g",)" +
                 claim + "}]" + more + "}}"));
    EXPECT_TRUE(pod.ok()) << pod.status().ToString();
  }
  void AddFromTemplate(const std::string& name) {
    AddPod(name, R"("resourceClaimTemplateName":"t")");
  }
  void Settle() {
    for (int i = 0; i < 100 && keeper_.Step(); ++i) {
    }
  }
  Json Pod(const std::string& name) {
    return client_.Get(kube::kPods, "default", name).value_or(Json());
  }
  std::string ClaimOf(const std::string& pod) {
    const Json object = Pod(pod);
    const Json* statuses = Find(object, "status", "resourceClaimStatuses");
    if (statuses == nullptr || statuses->get_array().empty()) return "";
    return std::string(FindString(statuses->at(0), "resourceClaimName"));
  }
  Json Claim(const std::string& name) {
    return client_.Get(kResourceClaims, "default", name).value_or(Json());
  }
  size_t Claims() { return client_.List(kResourceClaims, "default", {}).value().items.size(); }
  // Writes finalizer, allocation and users, as a scheduler does.
  void Allocate(const std::string& claim, const std::vector<std::string>& pods) {
    JsonArray consumers;
    for (const std::string& pod : pods) {
      consumers.push_back(JsonObject{
          {"resource", "pods"}, {"name", pod}, {"uid", FindString(Pod(pod), "metadata", "uid")}});
    }
    Json object = Claim(claim);
    MakeObject(object, "metadata")["finalizers"] = JsonArray{kClaimFinalizer};
    object = client_.Update(kResourceClaims, "default", object).value();
    MakeObject(object, "status")["allocation"] = FromText(R"({"devices":{"results":[
        {"request":"gpu","driver":"gpu.example.com","pool":"n","device":"d"}]}})");
    MakeObject(object, "status")["reservedFor"] = std::move(consumers);
    const auto written = client_.Update(kResourceClaims, "default", object, "status");
    EXPECT_TRUE(written.ok()) << written.status().ToString();
  }
  void Finish(const std::string& pod) {
    EXPECT_TRUE(client_
                    .Patch(kube::kPods, "default", pod, kube::PatchType::kMerge,
                           FromText(R"({"status":{"phase":"Succeeded"}})"), "status")
                    .ok());
  }
  static size_t Consumers(const Json& claim) {
    const Json* consumers = Find(claim, "status", "reservedFor");
    return consumers == nullptr ? 0 : consumers->get_array().size();
  }

  WorldClock clock_{Time(std::chrono::seconds(1'767'225'600))};
  ApiServer api_{clock_};
  EventLog log_{clock_, clock_.Now()};
  kube::Client client_{api_};
  ClaimKeeper keeper_{api_, clock_, log_};
};

TEST_F(ClaimKeeperTest, MakesAClaimForEachPodOfATemplate) {
  Settle();
  EXPECT_FALSE(keeper_.any());
  AddFromTemplate("a");
  AddFromTemplate("b");
  Settle();
  EXPECT_TRUE(keeper_.any());
  EXPECT_EQ(Claims(), 2U);
  ASSERT_TRUE(ClaimOf("a").starts_with("a-g-")) << ClaimOf("a");
  EXPECT_TRUE(ClaimOf("b").starts_with("b-g-"));
  const auto pod = cluster::DecodePod(Pod("a"));
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(pod->claims.at(0).claim, ClaimOf("a")) << "as a scheduler reads it";
  const Json claim = Claim(ClaimOf("a"));
  EXPECT_EQ(FindString(claim, "metadata", "annotations", kPodClaimName), "g");
  EXPECT_EQ(FindString(claim, "metadata", "labels", "a"), "b");
  const Json& owner = Find(claim, "metadata", "ownerReferences")->at(0);
  EXPECT_EQ(FindString(owner, "uid"), FindString(Pod("a"), "metadata", "uid"));
  EXPECT_EQ(*Find(owner, "controller"), true);
  EXPECT_EQ(*Find(owner, "blockOwnerDeletion"), true);
  Settle();
  EXPECT_EQ(Claims(), 2U);
}

TEST_F(ClaimKeeperTest, WaitsForTheTemplate) {
  AddPod("a", R"("resourceClaimTemplateName":"late")");
  Settle();
  EXPECT_EQ(Claims(), 0U);
  ASSERT_EQ(keeper_.NextWake(), clock_.Now() + ClaimKeeper::kRetry);
  EXPECT_TRUE(client_
                  .Create(kClaimTemplates, "default",
                          FromText(R"({"metadata":{"name":"late"},"spec":{"spec":{}}})"))
                  .ok());
  clock_.AdvanceTo(*keeper_.NextWake());
  Settle();
  EXPECT_EQ(Claims(), 1U);
  EXPECT_FALSE(keeper_.NextWake());
}

TEST_F(ClaimKeeperTest, RecordsAClaimThatWasMadeBefore) {
  AddFromTemplate("a");
  Settle();
  const std::string claim = ClaimOf("a");
  EXPECT_TRUE(client_
                  .Patch(kube::kPods, "default", "a", kube::PatchType::kMerge,
                         FromText(R"({"status":{"resourceClaimStatuses":null}})"), "status")
                  .ok());
  Settle();
  EXPECT_EQ(ClaimOf("a"), claim);
  EXPECT_EQ(Claims(), 1U);
}

TEST_F(ClaimKeeperTest, EndOfThePodFreesAndDeletesItsClaim) {
  AddFromTemplate("a");
  Settle();
  const std::string claim = ClaimOf("a");
  Allocate(claim, {"a"});
  Settle();
  EXPECT_EQ(Consumers(Claim(claim)), 1U);
  Finish("a");
  Settle();
  EXPECT_EQ(Claims(), 0U);
}

TEST_F(ClaimKeeperTest, DeletionOfThePodRemovesItsClaim) {
  AddFromTemplate("a");
  Settle();
  const std::string claim = ClaimOf("a");
  Allocate(claim, {"a"});
  Settle();
  EXPECT_TRUE(client_.Delete(kube::kPods, "default", "a").ok());
  Settle();
  EXPECT_EQ(Claims(), 0U) << WriteJson(Claim(claim));
}

TEST_F(ClaimKeeperTest, SharedClaimIsFreedByItsLastPod) {
  EXPECT_TRUE(client_
                  .Create(kResourceClaims, "default", FromText(R"({"metadata":{"name":"c"},"spec":{
      "devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com"}}]}}})"))
                  .ok());
  AddPod("a", R"("resourceClaimName":"c")");
  AddPod("b", R"("resourceClaimName":"c")");
  Settle();
  Allocate("c", {"a", "b"});
  Settle();
  EXPECT_EQ(Consumers(Claim("c")), 2U);
  Finish("a");
  Settle();
  EXPECT_EQ(Consumers(Claim("c")), 1U);
  EXPECT_NE(Find(Claim("c"), "status", "allocation"), nullptr);
  Finish("b");
  Settle();
  const Json claim = Claim("c");
  EXPECT_TRUE(claim.is_object()) << "a claim of the user stays";
  EXPECT_EQ(Consumers(claim), 0U);
  EXPECT_EQ(Find(claim, "status", "allocation"), nullptr);
  EXPECT_EQ(*Find(claim, "metadata", "finalizers"), JsonArray());
}

TEST_F(ClaimKeeperTest, ReservesForPodsThatWereBoundByHand) {
  EXPECT_TRUE(client_
                  .Create(kResourceClaims, "default", FromText(R"({"metadata":{"name":"c"},"spec":{
      "devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com"}}]}}})"))
                  .ok());
  AddPod("a", R"("resourceClaimName":"c")", R"(,"nodeName":"n")");
  AddPod("b", R"("resourceClaimName":"c")");
  Settle();
  EXPECT_EQ(Consumers(Claim("c")), 0U);
  Allocate("c", {});
  Settle();
  const Json claim = Claim("c");
  ASSERT_EQ(Consumers(claim), 1U) << "only for the bound pod";
  EXPECT_EQ(FindString(Find(claim, "status", "reservedFor")->at(0), "name"), "a");
}

TEST_F(ClaimKeeperTest, LeavesTheFinalizerThatASchedulerWritesFirst) {
  AddFromTemplate("a");
  Settle();
  const std::string claim = ClaimOf("a");
  Json object = Claim(claim);
  MakeObject(object, "metadata")["finalizers"] = JsonArray{kClaimFinalizer};
  EXPECT_TRUE(client_.Update(kResourceClaims, "default", object).ok());
  Settle();
  EXPECT_EQ(*Find(Claim(claim), "metadata", "finalizers"), JsonArray{kClaimFinalizer});
  EXPECT_TRUE(client_.Delete(kube::kPods, "default", "a").ok());
  Settle();
  EXPECT_EQ(Claims(), 0U);
}

TEST_F(ClaimKeeperTest, ReplacedPodIsNoConsumer) {
  EXPECT_TRUE(client_
                  .Create(kResourceClaims, "default", FromText(R"({"metadata":{"name":"c"},"spec":{
      "devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com"}}]}}})"))
                  .ok());
  AddPod("a", R"("resourceClaimName":"c")");
  Allocate("c", {"a"});
  Settle();
  EXPECT_TRUE(client_.Delete(kube::kPods, "default", "a").ok());
  AddPod("a", R"("resourceClaimName":"c")");
  Settle();
  EXPECT_EQ(Find(Claim("c"), "status", "allocation"), nullptr);
}

TEST_F(ClaimKeeperTest, LongNamesAreShortenedAlike) {
  const std::string pod(60, 'p');
  AddFromTemplate(pod);
  Settle();
  const std::string claim = ClaimOf(pod);
  EXPECT_LE(claim.size(), 63U);
  EXPECT_NE(claim.find("p-"), std::string::npos);
}

}  // namespace
}  // namespace nos::sim
