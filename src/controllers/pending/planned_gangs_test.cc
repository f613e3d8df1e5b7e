#include "controllers/planned_gangs.h"

#include <gmock/gmock.h>

#include "controllers/gangs.h"
#include "controllers/partitioner/fixture_test.h"

namespace nos::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlannedGangsTest : public ::testing::Test {
 protected:
  using Pod = std::shared_ptr<cluster::Pod>;

  Pod Add(const std::string& name, const std::string& group = "g") {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "ml";
    pod->meta.name = name;
    pod->phase = "Pending";
    if (!group.empty()) pod->meta.labels[std::string(kPodGroupLabel)] = group;
    all_.push_back(pod);
    return pod;
  }
  void Group(const std::string& name, int least) {
    auto group = std::make_shared<cluster::PodGroup>();
    group->min_member = least;
    context_.pod_groups.Set("ml/" + name, group);
  }
  GangedPods With(std::vector<std::shared_ptr<const cluster::Pod>> waiting) const {
    return WithGangs(std::move(waiting), all_, context_, reservations_, now_);
  }

  std::vector<std::shared_ptr<const cluster::Pod>> all_;
  cluster::ClusterContext context_;
  SliceReservations reservations_{{seconds(60), minutes(10)}};
  Time now_{};
};

TEST_F(PlannedGangsTest, CountsPendingMembersOnceAndServedMembersAsPlaced) {
  Group("g", 4);
  const Pod refused = Add("refused"), single = Add("single", "");
  const Pod fresh = Add("fresh"), bound = Add("bound"), failed = Add("failed");
  const Pod chosen = Add("chosen"), gated = Add("gated"), kept = Add("kept");
  bound->node_name = failed->node_name = "n";
  failed->phase = "Failed";
  chosen->nominated_node = "n";
  gated->scheduling_gates = {"wait"};
  reservations_.Add(kept, "n", now_);
  const GangedPods ganged = With({single, refused});
  EXPECT_THAT(ganged.pods, ElementsAre(single, refused, fresh));
  ASSERT_EQ(ganged.gangs.size(), 1u);
  EXPECT_EQ(ganged.gangs[0].name, "pod group ml/g");
  EXPECT_EQ(ganged.gangs[0].least, 4);
  EXPECT_EQ(ganged.gangs[0].placed, 3);
  EXPECT_THAT(ganged.gangs[0].members, ::testing::UnorderedElementsAre(1, 2));
}

TEST_F(PlannedGangsTest, LeavesOutMemberInBackOff) {
  Group("g", 2);
  const Pod paused = Add("paused"), other = Add("other");
  reservations_.Add(paused, "n", now_);
  now_ += seconds(60);
  reservations_.Update([&](const std::string&) { return paused; }, now_);
  EXPECT_THAT(With({other}).gangs.at(0).members, ElementsAre(0));
}

TEST_F(PlannedGangsTest, IgnoresGangOfMinimumSizeOne) {
  Group("g", 1);
  const Pod pod = Add("pod"), stranger = Add("stranger", "unknown");
  EXPECT_THAT(With({pod}).gangs, IsEmpty());
  EXPECT_EQ(With({stranger}).gangs.at(0).problem, "there is no PodGroup ml/unknown");
}

TEST_F(PlannedGangsTest, DropsReservationsOfTooSmallGang) {
  Group("g", 3);
  const Pod a = Add("a"), b = Add("b"), c = Add("c"), single = Add("single", "");
  for (const Pod& pod : {a, b, c, single}) reservations_.Add(pod, "n", now_);
  EXPECT_FALSE(DropReservationsOfBrokenGangs(all_, context_, reservations_));
  reservations_.Drop("ml/c");
  c->node_name = "n";
  EXPECT_FALSE(DropReservationsOfBrokenGangs(all_, context_, reservations_)) << "c has its node";
  c->phase = "Failed";
  b->nominated_node = "n";
  EXPECT_TRUE(DropReservationsOfBrokenGangs(all_, context_, reservations_));
  EXPECT_FALSE(reservations_.Holds("ml/a"));
  EXPECT_TRUE(reservations_.Holds("ml/b")) << "that is its scheduler's business";
  EXPECT_TRUE(reservations_.Holds("ml/single"));
}

class PartitionerGangTest : public PartitionerTest {
 protected:
  PartitionerGangTest() {
    runner_ = std::make_unique<reconcile::Runner>(*partitioner_, api_, WatchingGangs());
  }
  void Group(const std::string& name, int least) {
    api_.Put({{"kind", "PodGroup"},
              {"metadata", {{"namespace", "ml"}, {"name", name}}},
              {"spec", {{"minMember", least}}}});
  }
  void Member(const std::string& name, const std::string& profile, const std::string& group) {
    Pod(name, profile);
    Change("pods", "ml/" + name, [&](Json& pod) {
      MakeObject(pod, "metadata", "labels")["scheduling.x-k8s.io/pod-group"] = group;
    });
  }
};

// Node "b" never answers, so the reservation on "a" is dropped and the slice goes to another pod.
TEST_F(PartitionerGangTest, GivesSlicesOfTooSmallGangToOtherPod) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  Group("g", 2);
  Member("p0", "7g.40gb", "g");
  Member("p1", "7g.40gb", "g");
  Run();
  ASSERT_EQ(Spec("a"), "7g.40gb@0");
  ASSERT_EQ(Spec("b"), "7g.40gb@0");
  Acknowledge("a", {{0, "7g.40gb@0:free"}});
  Run();
  Pod("other", "1g.5gb");
  Run();
  EXPECT_EQ(Spec("a"), "7g.40gb@0");
  Run(config_.plan_ack_timeout);
  EXPECT_THAT(Spec("a"), HasSubstr("1g.5gb"));
  EXPECT_EQ(Condition("p0", "reason"), "GangNotWhole");
}

}  // namespace
}  // namespace nos::controllers
