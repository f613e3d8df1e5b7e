#include "scheduling/engine/nominator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::NodeOf;
using testing::PodOf;
using testing::Resources;

class NominatorTest : public ::testing::Test {
 protected:
  using Pod = Nominator::Pod;

  NominatorTest() {
    cache_.SetNode(std::make_shared<const cluster::Node>(NodeOf("a", {{"cpu", "8"}})));
  }
  static Pod Make(const std::string& name, int priority, const std::string& ns = "x") {
    auto pod = std::make_shared<cluster::Pod>(PodOf(name, {{"cpu", "4"}}));
    pod->meta.ns = ns;
    pod->priority = priority;
    return pod;
  }
  // A quota of 4 CPUs for the namespace.
  void SetQuota(const std::string& ns) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = ns;
    quota->meta.name = "quota";
    quota->namespaces = {ns};
    quota->min = Resources({{"cpu", "4"}});
    cache_.ChangeContext(
        [&](cluster::ClusterContext& context) { context.quotas.Set(quota->Key(), quota); });
  }
  std::vector<std::string> FirstOnNode(const Pod& pod) const {
    std::optional<quota::Amounts> before;
    std::vector<std::string> names;
    for (const Pod& first : nominator_.FirstOn("a", *pod, before)) {
      names.push_back(first->meta.name);
    }
    return names;
  }

  QuotaCharges charges_;
  KindTables tables_;
  ClusterCache cache_{gpu::Catalogue::Builtin(), charges_, tables_};
  EvictedPods evicted_{cache_, charges_};
  Nominator nominator_{cache_, charges_, evicted_};
};

// A borrower that counted first would count with what the guaranteed pods are to get.
TEST_F(NominatorTest, GuaranteedPodsGetCapacityFirst) {
  SetQuota("x");
  SetQuota("y");
  (void)nominator_.Set(Make("borrower", 0, "y"), "a", false);
  (void)nominator_.Set(Make("owner", 0, "x"), "a", false);
  (void)nominator_.Set(Make("important-owner", 5, "y"), "a", false);
  EXPECT_THAT(FirstOnNode(Make("p", 0, "without-quota")),
              ElementsAre("important-owner", "owner", "borrower"));
}

TEST_F(NominatorTest, ReportsEffectOfEachChange) {
  const Pod pod = Make("p", 0);
  EXPECT_EQ(nominator_.Set(pod, "", false), Nominator::Effect::kNone);
  EXPECT_EQ(nominator_.Set(pod, "a", false), Nominator::Effect::kTakes);
  EXPECT_EQ(nominator_.Set(pod, "a", false), Nominator::Effect::kTakes);
  EXPECT_EQ(nominator_.NodeOf(pod->Key()), "a");
  EXPECT_EQ(nominator_.Set(pod, "b", false), Nominator::Effect::kFrees);
  EXPECT_EQ(nominator_.Set(pod, "", false), Nominator::Effect::kFrees);
  EXPECT_TRUE(nominator_.empty());
}

TEST_F(NominatorTest, HigherOrEqualPriorityGoesFirst) {
  nominator_.Set(Make("nominated", 5), "a", false);
  EXPECT_THAT(FirstOnNode(Make("lower", 4)), ElementsAre("nominated"));
  EXPECT_THAT(FirstOnNode(Make("equal", 5)), ElementsAre("nominated"));
  EXPECT_THAT(FirstOnNode(Make("higher", 6)), IsEmpty());
}

TEST_F(NominatorTest, PodThatRunsDoesNotGoFirst) {
  const Pod pod = Make("nominated", 5);
  nominator_.Set(pod, "a", false);
  cache_.Assume(pod, "a");
  EXPECT_THAT(FirstOnNode(Make("other", 0)), IsEmpty());
}

TEST_F(NominatorTest, GuaranteedPodGoesBeforeHigherPriority) {
  SetQuota("team-a");
  nominator_.Set(Make("guaranteed", 0, "team-a"), "a", false);
  EXPECT_THAT(FirstOnNode(Make("other", 9)), ElementsAre("guaranteed"));
}

TEST_F(NominatorTest, StandingFollowsUseOfQuotaAndEvictions) {
  SetQuota("team-a");
  SetQuota("team-b");
  const Pod pod = Make("nominated", 0, "team-a");
  nominator_.Set(pod, "a", false);
  EXPECT_TRUE(nominator_.IsGuaranteed(*pod, "a"));
  const Pod running = Make("running", 0, "team-a");
  cache_.Assume(running, "a");
  EXPECT_FALSE(nominator_.IsGuaranteed(*pod, "a"));
  EXPECT_TRUE(evicted_.Set(running->Key(), true));
  nominator_.OnEvictionsChange();
  EXPECT_TRUE(nominator_.IsGuaranteed(*pod, "a"));
}

}  // namespace
}  // namespace nos::scheduling
