#include "sim/world/checks/move_checker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/relocations.h"
#include "planning/mobility.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class MoveCheckerTest : public testing::Test {
 protected:
  using Pod = MoveChecker::Pod;

  static std::shared_ptr<cluster::Pod> Make(const std::string& name, const std::string& node) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "default";
    pod->meta.name = name;
    pod->meta.uid = "uid-" + name;
    pod->meta.owners = {{"batch/v1", "Job", "job", "j", true}};
    pod->node_name = node;
    pod->phase = "Running";
    pod->containers.resize(1);
    pod->containers[0].requests["nvidia.com/mig-1g.5gb"] = Quantity::FromValue(1);
    return pod;
  }
  // A placeholder for one of the `of` places of relocation r-1.
  static std::shared_ptr<cluster::Pod> Place(const std::string& pod, const std::string& node,
                                             int of = 1) {
    auto place = Make("place-" + pod, node);
    place->meta.owners.clear();
    place->meta.labels[std::string(controllers::kPlaceholder)] = "r-1";
    place->meta.annotations[std::string(controllers::kPlaceFor)] = fmt::format(
        R"({{"id":"r-1","of":{},"pod":"default/{}","uid":"uid-{}","from":"n1","to":"{}"}})", of,
        pod, pod, node);
    return place;
  }
  void Add(const Pod& pod) { checker.See(nullptr, pod, now); }
  // The problems with an eviction of the pod now.
  std::vector<std::string> Evict(const std::string& name) {
    checker.Asked("default/" + name, "", now);
    return checker.TakeProblems();
  }
  // The problem with an eviction from n1 without a place for the pod.
  static std::string NoPlace(const std::string& name) {
    return "default/" + name + " is evicted from n1, and no place on another node is held for it";
  }

  Time now{};
  MoveChecker checker;
  const PoolBounds pool{"a100", 1, 3};
};

TEST_F(MoveCheckerTest, RequiresRunningPlaceholderOnAnotherNode) {
  Add(Make("a", "n1"));
  EXPECT_THAT(Evict("a"), ElementsAre(NoPlace("a")));
  Add(Make("b", "n1"));
  Add(Place("b", "n2"));
  EXPECT_THAT(Evict("b"), IsEmpty());
  EXPECT_EQ(checker.evictions(), 2);
}

TEST_F(MoveCheckerTest, RejectsPendingOrLocalOrTooSmallPlaceholders) {
  for (const char* name : {"a", "b", "c"}) Add(Make(name, "n1"));
  auto waits = Place("a", "");
  waits->phase = "Pending";
  Add(waits);
  Add(Place("b", "n1"));
  auto small = Place("c", "n2");
  small->containers[0].requests.clear();
  Add(small);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_THAT(Evict(name), ElementsAre(NoPlace(name)));
  }
}

TEST_F(MoveCheckerTest, RejectsPlaceholderForAnotherPodOfTheSameName) {
  auto successor = Make("a", "n1");
  successor->meta.uid = "another";
  Add(successor);
  Add(Place("a", "n2"));
  EXPECT_THAT(Evict("a"), ElementsAre(NoPlace("a")));
}

TEST_F(MoveCheckerTest, LostPlaceholderCountsForAWhile) {
  Add(Make("a", "n1"));
  Add(Make("b", "n1"));
  const auto of_a = Place("a", "n2"), of_b = Place("b", "n2");
  Add(of_a);
  Add(of_b);
  checker.See(of_a, nullptr, now);
  checker.See(of_b, nullptr, now);
  now += seconds(1);
  EXPECT_THAT(Evict("a"), IsEmpty());
  now += kFaultsLinger;
  EXPECT_THAT(Evict("b"), ElementsAre(NoPlace("b")));
}

TEST_F(MoveCheckerTest, RequiresAllPlacesBeforeTheFirstEviction) {
  Add(Make("a", "n1"));
  Add(Make("b", "n1"));
  Add(Place("a", "n2", 2));
  EXPECT_THAT(Evict("a"),
              ElementsAre("default/a is evicted from n1, when 1 of 2 places of r-1 are held"));
  Add(Place("b", "n2", 2));
  EXPECT_THAT(Evict("b"), IsEmpty());
}

// The place is given up for the pod's successor.
TEST_F(MoveCheckerTest, AcceptsMissingPlacesOnceEvictionsBegan) {
  Add(Make("a", "n1"));
  Add(Make("b", "n1"));
  const auto of_a = Place("a", "n2", 2);
  Add(of_a);
  Add(Place("b", "n2", 2));
  EXPECT_THAT(Evict("a"), IsEmpty());
  checker.See(of_a, nullptr, now);
  now += kFaultsLinger + seconds(1);
  EXPECT_THAT(Evict("b"), IsEmpty());
}

// A pod of the relocation has ended by itself, long before the others are evicted.
TEST_F(MoveCheckerTest, PlacesOfEndedPodsCountAsHeld) {
  Add(Make("b", "n1"));
  auto place = Place("b", "n2", 2);
  place->meta.annotations[std::string(controllers::kPlaceFor)] =
      R"({"id":"r-1","of":2,"uid":"uid-b","ended":["uid-a"]})";
  Add(place);
  EXPECT_THAT(Evict("b"), IsEmpty());
}

TEST_F(MoveCheckerTest, ReportsEvictionOfImmovablePods) {
  auto critical = Make("a", "n1");
  critical->priority = planning::kSystemCritical;
  auto alone = Make("b", "n1");
  alone->meta.owners.clear();
  for (const auto& pod : {critical, alone}) {
    Add(pod);
    Add(Place(pod->meta.name, "n2"));
  }
  EXPECT_THAT(
      Evict("a"),
      ElementsAre("default/a is evicted from n1, though it is the system's, by its priority"));
  EXPECT_THAT(
      Evict("b"),
      ElementsAre("default/b is evicted from n1, though it has no controller that would make it "
                  "anew (nos.nebuly.com/movable: \"true\" lets it move)"));
}

TEST_F(MoveCheckerTest, IgnoresTerminatingAndRemovedPods) {
  auto ending = Make("a", "n1");
  ending->meta.deleted = now;
  Add(ending);
  EXPECT_THAT(Evict("a"), IsEmpty());
  EXPECT_THAT(Evict("gone"), IsEmpty());
  Add(Make("b", "n1"));
  checker.Asked("default/b", "of-another", now);
  EXPECT_THAT(checker.TakeProblems(), IsEmpty());
  EXPECT_EQ(checker.evictions(), 0);
}

TEST_F(MoveCheckerTest, ReportsPoolSizesOutOfBounds) {
  checker.SeeScale(pool, 1, 3);
  checker.SeeScale(pool, 3, 1);
  checker.SeeScale(pool, 5, 4);  // the request before was above the maximum
  EXPECT_THAT(checker.TakeProblems(), IsEmpty());
  checker.SeeScale(pool, 3, 4);
  EXPECT_THAT(checker.TakeProblems(),
              ElementsAre("pool a100 is asked for 4 nodes, and its maximum is 3"));
  checker.SeeScale(pool, 1, 0);
  EXPECT_THAT(checker.TakeProblems(),
              ElementsAre("pool a100 is left 0 nodes, and its minimum is 1"));
}

TEST_F(MoveCheckerTest, ReportsRemovalOfNodesWithPods) {
  Add(Make("a", "n1"));
  auto daemon = Make("d", "n2");
  daemon->meta.owners = {{"apps/v1", "DaemonSet", "d", "x", true}};
  Add(daemon);
  now += kFaultsLinger + seconds(1);
  Add(Make("late", "n2"));
  checker.SeeRemoval("n2", pool, 1, now);
  EXPECT_THAT(checker.TakeProblems(), IsEmpty());
  checker.SeeRemoval("n1", pool, 0, now);
  EXPECT_THAT(checker.TakeProblems(),
              ElementsAre("n1 goes, which leaves pool a100 0 nodes, and its minimum is 1",
                          "n1 goes with default/a on it"));
}

TEST_F(MoveCheckerTest, ListsLeftovers) {
  auto plain = std::make_shared<cluster::Node>();
  plain->meta.name = "n1";
  auto cordoned = std::make_shared<cluster::Node>();
  cordoned->meta.name = "n2";
  cordoned->unschedulable = true;
  cordoned->meta.annotations[std::string(controllers::kRemoval)] = "{}";
  EXPECT_THAT(MoveChecker::Leftovers({plain}, {Make("a", "n1")}), IsEmpty());
  EXPECT_THAT(MoveChecker::Leftovers({plain, cordoned}, {Make("a", "n1"), Place("a", "n2")}),
              ElementsAre("default/place-a is left, a placeholder (Running)",
                          "n2 is still cordoned", "n2 is still to go: {}"));
}

}  // namespace
}  // namespace nos::sim
