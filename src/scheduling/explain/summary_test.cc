#include "scheduling/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "scheduling/explain.h"
#include "scheduling/framework.h"
#include "scheduling/reasons.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NodeOf;
using testing::PodOf;

using Action = PodSummary::Action;

PodFacts Pending(std::string remedy) {
  return {"ml/a", "pending", "3g.20gb", "0/2 nodes are available", std::move(remedy)};
}

// A text of each place that makes one.
TEST(SummaryTest, RecognizesEachRemedyByItsText) {
  const std::vector<std::pair<std::string, std::string_view>> texts = {
      {"none needed: it fits on node a now", remedies::kNoneNeeded},
      {"wait until the component that set its scheduling gates removes them: x/y",
       remedies::kLiftGate},
      {"complete its group: pod group ml/t has 1 of 3 pods", remedies::kCompleteGang},
      {"raise max of r in elastic quota a/b to 3", remedies::kRaiseQuota},
      {"raise min of r in elastic quota a/b by 3, or wait until pods that have 3 of it end",
       remedies::kRaiseQuota},
      {"raise planTimeoutSeconds of the partitioner: node a has room", remedies::kRaisePlanTimeout},
      {"wait for the end of pod ml/b on node a", remedies::kWaitForPods},
      {"for ml/c: wait for the end of pod ml/b on node a", remedies::kWaitForPods},
      {"wait until pod ml/b is served: room on node a is kept for it",
       remedies::kWaitForReservation},
      {"wait until the agent of node a has carried out its plan; if that lasts, inspect the "
       "agent's "
       "pod on node a",
       remedies::kLiftConstraints},
      {"free 500m cpu on node a", remedies::kFreeResources},
      {"create 3g.20gb@4 of GPU 0 on node a: the partitioner does so", remedies::kPartitionGpus},
      {"create its PersistentVolumeClaim: claim x not found", remedies::kLiftConstraints},
      {"run it as a Deployment with a nodeSelector for node a: x", remedies::kUseDeployment},
      {"opt node a in to partitioning (label x=mig): it has GPUs y", remedies::kOptInNode},
      {"inspect the agent's pod on node a: its GPUs cannot be partitioned now",
       remedies::kInspectAgent},
      {"inspect its resource claims, which are not simulated: without them it fits on node a now",
       remedies::kInspectResourceClaims},
      {"add a node that the pod may use, with GPUs for 1g.12gb such as H100-96GB",
       remedies::kAddNode},
      {"split the pod: 1000 x 1g.5gb are more than a node with 16 GPUs can hold",
       remedies::kSplitPod},
      {"request less cpu: no known machine has 5000", remedies::kRequestLess},
      {"require less in the annotations nos.nebuly.com/need-*: no", remedies::kRequestLess},
      {"request one nvidia.com/gpu-4gb in container c, or each share in a container of its own",
       remedies::kRequestOneShare},
      {"request each share in a container of its own", remedies::kRequestOneShare},
      {"request nvidia.com/mig-7g.80gb instead of nvidia.com/mig-7g.79gb: A100 offers it by that "
       "name",
       remedies::kRequestAdvertisedName},
      {"request an existing profile (the nearest are 1g.5gb): no known GPU model can be "
       "partitioned into 1g.7gb",
       remedies::kRequestExistingProfile},
      {"allow a geometry with 1g.5gb on A100-40GB in your catalogue file",
       remedies::kAllowInCatalogue},
      {"name 1g.5gb.share2 in hybrid.migParts of the agents of nodes", remedies::kConfigureParts},
      {"uncordon node a: it has room", remedies::kLiftConstraints},
      {"", ""},
  };
  for (const auto& [text, code] : texts) EXPECT_EQ(RemedyCodeOf(text), code) << text;
}

TEST(SummaryTest, NamesPodsInTheWayAndBothWaysOut) {
  const auto summary = Summarize(
      Pending("wait for the end of pod ml/b, pod ml/c on node a, or give it a priority above 7"));
  EXPECT_EQ(summary.headline, "ml/a waits for 3g.20gb that other pods hold");
  EXPECT_EQ(summary.cause, "0/2 nodes are available");
  EXPECT_THAT(summary.in_the_way, ElementsAre("pod ml/b, pod ml/c on node a"));
  EXPECT_THAT(
      summary.actions,
      ElementsAre(Action{"wait for the end of pod ml/b, pod ml/c on node a", "it then fits there"},
                  Action{"give it a priority above 7", "it then evicts them"}));
  EXPECT_FALSE(summary.eta);
  EXPECT_THAT(summary.eta_reason, HasSubstr("depends on when others end"));
}

TEST(SummaryTest, RemedyOfAnotherMemberIsAboutTheGroup) {
  const auto summary = Summarize(Pending("for ml/c: wait for the end of pod ml/b on node a"));
  EXPECT_EQ(summary.headline, "ml/a waits for other pods of its group");
  EXPECT_THAT(summary.in_the_way, ElementsAre("pod ml/b on node a"));
  EXPECT_THAT(summary.actions,
              ElementsAre(Action{"for ml/c: wait for the end of pod ml/b on node a",
                                 "it then fits there"}));
}

TEST(SummaryTest, DividesNoListOfSteps) {
  const std::string steps =
      "label node a with z=1, or remove that from its node selector, and uncordon node a";
  const auto several = Summarize(Pending(steps + ": it has room"));
  EXPECT_THAT(several.actions, ElementsAre(Action{steps, "it has room"}));
  const auto one = Summarize(
      Pending("label node a with z=1, or remove that from its node selector: it has room"));
  EXPECT_THAT(one.actions,
              ElementsAre(Action{"label node a with z=1", "it has room"},
                          Action{"remove that from its node selector", "it has room"}));
}

TEST(SummaryTest, QuotaInTheWayAndWhatRaisingItBrings) {
  const auto summary = Summarize(
      Pending("raise min of r in elastic quota p/q by 20, or wait until pods that have 20 "
              "of it end; even then no node has room for it now"));
  EXPECT_EQ(summary.headline, "ml/a waits for its quota");
  EXPECT_THAT(summary.in_the_way, ElementsAre("elastic quota p/q"));
  EXPECT_THAT(
      summary.actions,
      ElementsAre(Action{"raise min of r in elastic quota p/q by 20",
                         "its quota then admits it; even then no node has room for it now"},
                  Action{"wait until pods that have 20 of it end", "its quota then admits it"}));
}

// No estimate holds for pods that nobody but their owner can help.
TEST(SummaryTest, EstimateOnlyWhereWaitingHelps) {
  const Time soon = Time(std::chrono::seconds(1'800'000'000));
  const auto eta = [&](std::string remedy) {
    PodFacts facts = Pending(std::move(remedy));
    facts.estimate = soon;
    facts.estimate_by = "history";
    return Summarize(facts);
  };
  EXPECT_EQ(eta("wait for the end of pod ml/b on node a").eta, soon);
  EXPECT_EQ(eta("wait for the end of pod ml/b on node a").eta_reason, "history");
  for (const char* held :
       {"wait until the component that set its scheduling gates removes them: x/y",
        "complete its group: x", "label node a with z=1: it has room",
        "request an existing profile: no known GPU model can be partitioned into 1g.7gb",
        "split the pod: x", "add a node with at least 5 cpu"}) {
    EXPECT_FALSE(eta(held).eta) << held;
    EXPECT_THAT(eta(held).eta_reason, ::testing::Not(IsEmpty())) << held;
  }
}

TEST(SummaryTest, GatesAreInTheWayOneByOne) {
  const auto summary = Summarize(
      Pending("wait until the component that set its scheduling gates removes them: a/b, c/d"));
  EXPECT_EQ(summary.headline, "ml/a is held by its scheduling gates");
  EXPECT_THAT(summary.in_the_way, ElementsAre("a/b", "c/d"));
  EXPECT_EQ(summary.eta_reason, "not known: it depends on when its gates are removed");
}

PodFacts Placed(std::string state) {
  PodFacts facts{"ml/a", std::move(state), "3g.20gb", "", ""};
  facts.node = "n";
  facts.devices = {"3g.20gb@4 of GPU 2"};
  facts.since = *ParseTime("2026-01-02T03:04:05Z");
  facts.priority = 5;
  return facts;
}

TEST(SummaryTest, RunningPodSaysWhereAndWhoMayEvictIt) {
  PodFacts facts = Placed("running");
  auto summary = Summarize(facts);
  EXPECT_EQ(summary.headline,
            "ml/a runs on node n (3g.20gb@4 of GPU 2) since 2026-01-02T03:04:05Z");
  EXPECT_EQ(summary.evictable_by, "pods with a priority above 5");
  EXPECT_FALSE(summary.eta);
  facts.capacity = "in-quota";
  EXPECT_EQ(Summarize(facts).cause, "min of its quota covers it");
  EXPECT_EQ(Summarize(facts).evictable_by, "only pods of its own quota with a priority above 5");
  facts.capacity = "over-quota";
  facts.evictors = {"pr/x"};
  EXPECT_EQ(Summarize(facts).cause, "it borrows beyond min of its quota");
  EXPECT_EQ(Summarize(facts).evictable_by,
            "pods of other quotas that are owed what it borrows, and pods of its own quota with a "
            "priority above 5; now by pod pr/x");
}

TEST(SummaryTest, EvictedPodSaysForWhom) {
  PodFacts facts = Placed("terminating");
  EXPECT_EQ(Summarize(facts).headline, "ml/a is being deleted on node n");
  facts.eviction.emplace("nos-scheduler", "pod pr/x", "message", true);
  facts.ends = *ParseTime("2026-01-02T03:05:00Z");
  EXPECT_EQ(Summarize(facts).headline,
            "ml/a is being evicted by nos-scheduler for pod pr/x, whose elastic quota guarantees "
            "these resources, on node n");
  EXPECT_EQ(Summarize(facts).eta_reason, "it is removed by 2026-01-02T03:05:00Z");
  facts.state = "failed";
  facts.eviction->for_quota = false;
  facts.eviction->preemptor.clear();
  EXPECT_EQ(Summarize(facts).headline,
            "ml/a was evicted by nos-scheduler for another pod, which has a higher priority");
  facts.eviction.reset();
  facts.cause = "Error: exit code 1";
  EXPECT_EQ(Summarize(facts).headline, "ml/a failed on node n");
  EXPECT_EQ(Summarize(facts).cause, "Error: exit code 1");
  facts.state = "succeeded";
  EXPECT_EQ(Summarize(facts).headline, "ml/a has completed on node n");
}

TEST(SummaryTest, SearchInTheClusterAddsFurtherActions) {
  const Framework framework = Framework::Default(PartitionedBy::kScheduler);
  cluster::Node cordoned = NodeOf("b", {{"cpu", "8"}});
  cordoned.unschedulable = true;
  cluster::Pod holder = PodOf("x", {{"cpu", "6"}}, "a");
  holder.phase = "Running";
  const cluster::Pod pod = PodOf("p", {{"cpu", "4"}});
  const auto snapshot = testing::Snap({NodeOf("a", {{"cpu", "8"}}), cordoned}, {holder});
  ExplainInput input{framework, framework, snapshot, pod, PreemptionOptions()};
  EXPECT_THAT(Explain(input).other_remedies, IsEmpty());
  input.alternatives = true;
  const Explanation why = Explain(input);
  const PodSummary summary = Summarize(FactsOf(why));
  std::vector<std::string> texts;
  for (const Action& action : summary.actions) texts.push_back(action.text);
  EXPECT_EQ(texts.front(), "wait for the end of pod x/x on node a");
  EXPECT_THAT(texts, ::testing::Contains("uncordon node b"));
  const Json json = ToJson(why);
  EXPECT_EQ(FindString(json, "headline"), summary.headline);
  EXPECT_TRUE(json.at("eta").is_null());
  EXPECT_EQ(json.at("actions").as_array().size(), summary.actions.size());
  EXPECT_EQ(FindString(json, "remedy"), why.remedy) << "the old fields stay";
}

TEST(SummaryTest, DemandNamesGpusOnly) {
  EXPECT_EQ(DemandText({{"nvidia.com/mig-3g.20gb", 1}, {"nvidia.com/mig-1g.5gb", 2}, {"cpu", 4}}),
            "2 x 1g.5gb and 3g.20gb");
  EXPECT_EQ(DemandText({{"memory", 1}}), "");
}

TEST(SummaryTest, SplitsTheRemedyFromItsReasons) {
  EXPECT_EQ(SplitRemedy("0/1 nodes. Remedy: wait."),
            std::pair(std::string("0/1 nodes."), std::string("wait")));
  EXPECT_EQ(SplitRemedy("0/1 nodes."), std::pair(std::string("0/1 nodes."), std::string()));
}

}  // namespace
}  // namespace nos::scheduling
