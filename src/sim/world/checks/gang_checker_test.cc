#include "sim/world/checks/gang_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/specs.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class GangCheckerTest : public testing::Test {
 protected:
  using Pod = GangChecker::Pod;

  GangCheckerTest() { checker.Expect("default/g", 3); }

  static Pod Member(const std::string& name, const std::string& node = "",
                    const std::string& phase = "Pending") {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "default";
    pod->meta.name = name;
    pod->meta.labels = {{std::string(kPodGroupLabel), "g"}};
    pod->node_name = node;
    pod->phase = phase;
    return pod;
  }
  void See(const Pod& pod) { checker.See(nullptr, pod, now); }
  void Keep(const std::string& name) { ASSERT_TRUE(kept.Bind(Member(name), "n").ok()); }
  std::vector<std::string> Check() { return checker.Check(kept, now); }

  static cluster::ClusterSnapshot OneNode() {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = "n";
    return cluster::ClusterSnapshot::Build({node}, {}, gpu::Catalogue::Builtin());
  }

  Time now{};
  GangChecker checker;
  cluster::ClusterSnapshot kept = OneNode();
};

TEST_F(GangCheckerTest, AcceptsGangBoundInOneStep) {
  for (const char* name : {"a", "b", "c"}) See(Member(name));
  for (const char* name : {"default/a", "default/b", "default/c"}) checker.Asked(name);
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(GangCheckerTest, ReportsBindingOfTooFewMembers) {
  for (const char* name : {"a", "b", "c"}) See(Member(name));
  checker.Asked("default/a");
  checker.Asked("default/b");
  EXPECT_THAT(Check(), ElementsAre("gang default/g: 2 of its pods are bound, and 3 must be"));
  EXPECT_THAT(Check(), IsEmpty()) << "nothing was asked for since";
}

TEST_F(GangCheckerTest, MemberWithNodeCountsUntilItFails) {
  See(Member("a", "n", "Running"));
  See(Member("b", "n", "Succeeded"));
  See(Member("c"));
  checker.Asked("default/c");
  EXPECT_THAT(Check(), IsEmpty());
  See(Member("b", "n", "Failed"));
  now += seconds(1);
  checker.Asked("default/c");
  EXPECT_THAT(Check(), IsEmpty()) << "the scheduler may not know yet";
  now += kFaultsLinger;
  checker.Asked("default/c");
  EXPECT_THAT(Check(), ElementsAre("gang default/g: 2 of its pods are bound, and 3 must be"));
}

TEST_F(GangCheckerTest, ReportsReservationsForTooFewMembers) {
  See(Member("a", "n", "Running"));
  Keep("b");
  EXPECT_THAT(
      Check(),
      ElementsAre(
          "gang default/g: places are kept although only 2 of its pods have one, and 3 must"));
  Keep("c");
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(GangCheckerTest, ReportsRepartitioningForTooFewMembers) {
  for (const char* name : {"b", "c", "d"}) See(Member(name));
  See(Member("a", "n", "Running"));
  EXPECT_THAT(
      checker.CheckPartitioning({"default/b"}, {"default/b"}, now),
      ElementsAre(
          "gang default/g: GPUs are partitioned although only 2 of its pods are served, and 3 "
          "must be"));
  EXPECT_THAT(checker.CheckPartitioning({"default/b"}, {"default/b", "default/c"}, now), IsEmpty());
  EXPECT_THAT(checker.CheckPartitioning({"default/x"}, {"default/b"}, now), IsEmpty())
      << "it is of no gang";
}

}  // namespace
}  // namespace nos::sim
