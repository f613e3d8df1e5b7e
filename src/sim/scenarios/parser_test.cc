#include <gtest/gtest.h>

#include <utility>

#include "sim/scenarios/steps.h"

namespace nos::sim {
namespace {

Scenario Parse(std::string_view text) {
  auto scenario = ParseScenario(text, "a.scenario");
  EXPECT_TRUE(scenario.ok()) << scenario.status().ToString();
  return scenario.ok() ? std::move(*scenario) : Scenario();
}

std::string ErrorOf(std::string_view text) {
  const auto scenario = ParseScenario(text, "a.scenario");
  return scenario.ok() ? "no error" : scenario.status().message();
}

// Texts that the parser refuses, with its whole messages.
using Refusals = std::vector<std::pair<std::string, std::string>>;

void ExpectErrors(const Refusals& refusals) {
  for (const auto& [text, message] : refusals) EXPECT_EQ(ErrorOf(text), message) << text;
}

TEST(ParserTest, ReadsNodesWithTheirGpus) {
  const Scenario scenario = Parse(R"(
# comment
node n1 model=A30 gpus=3 cpu=8 memory=16Gi labels=zone=a,team=x taints=k=v:NoSchedule cordoned
  gpu 0-1: 1g.6gb@0 used by a, 2g.12gb@2 free   # comment
  gpu 2 model=A100-40GB: empty
expect placed 0
)");
  ASSERT_EQ(scenario.nodes.size(), 1u);
  const NodeSpec& node = scenario.nodes[0];
  EXPECT_EQ(node.name, "n1");
  EXPECT_EQ(node.cpu, Quantity::FromValue(8));
  EXPECT_EQ(node.labels.at("team"), "x");
  EXPECT_EQ(node.taints.at(0).effect, "NoSchedule");
  EXPECT_TRUE(node.unschedulable);
  ASSERT_EQ(node.gpus.size(), 3u);
  EXPECT_EQ(node.gpus[1].instances.at(0).pod, "a");
  EXPECT_FALSE(node.gpus[1].instances.at(1).used);
  EXPECT_EQ(node.gpus[2].model, "A100-40GB");
  EXPECT_TRUE(node.gpus[2].instances.empty());
}

TEST(ParserTest, ReadsResetRules) {
  const Scenario scenario =
      Parse("node n1 hybrid reset=gpu\nnode n2 hybrid\nfail reset n1 2\nexpect running 0\n");
  EXPECT_EQ(scenario.nodes.at(0).resets, agent::ResetRule::kGpu);
  EXPECT_EQ(scenario.nodes.at(1).resets, agent::ResetRule::kNever);
  EXPECT_EQ(ErrorOf("node n1 reset=maybe\n"),
            "a.scenario:1: expected 'never', 'gpu' or 'node', got 'maybe'");
}

TEST(ParserTest, ReadsPoolsAndTheAutoscaler) {
  const Scenario scenario = Parse(R"(
pool a100 gpus=2 cpu=8 min=1 max=4 price=2.5 start=90s machines
pool cpus gpus=0 nodes=2 unnamed
autoscaler moves shrink-after=3m
fail pool a100 never
budget guard app=web max=1 allowed=0
quota team-a min=cpu=4 max=cpu=8 max=nvidia.com/gpu=1
crash autoscaler
expect pool a100 nodes >= 1 and evictions 0
)");
  ASSERT_EQ(scenario.pools.size(), 2u);
  const PoolSpec& pool = scenario.pools[0];
  EXPECT_EQ(pool.node.gpus.size(), 2u);
  EXPECT_EQ(pool.node.cpu, Quantity::FromValue(8));
  EXPECT_EQ(pool.nodes, 1);
  EXPECT_EQ(pool.price, Quantity::FromMilli(2500));
  EXPECT_EQ(pool.start, Duration(std::chrono::seconds(90)));
  EXPECT_TRUE(pool.machines && !pool.unnamed);
  EXPECT_EQ(scenario.pools[1].nodes, 2);
  EXPECT_TRUE(scenario.pools[1].unnamed && scenario.pools[1].node.gpus.empty());
  ASSERT_TRUE(scenario.autoscaler.has_value());
  EXPECT_TRUE(scenario.autoscaler->moves);
  EXPECT_EQ(scenario.autoscaler->shrink_after, Duration(std::chrono::minutes(3)));
  const auto operation = [&](size_t step) {
    return std::get<Operate>(scenario.steps.at(step).action);
  };
  EXPECT_EQ(operation(0).fault, PoolFault::kNever);
  EXPECT_EQ(operation(1).count, 1);
  EXPECT_EQ(operation(1).allowed, 0);
  EXPECT_EQ(operation(2).min.at("cpu"), "4");
  EXPECT_EQ(operation(2).max.at("nvidia.com/gpu"), "1");
  EXPECT_EQ(operation(3).target, "autoscaler");
  EXPECT_EQ(std::get<ExpectCount>(scenario.steps.at(4).action).what, "pool a100 nodes");
  EXPECT_FALSE(Parse("node n1\nexpect placed 0").autoscaler.has_value());
}

TEST(ParserTest, ReadsQuotasOfSeveralNamespacesAndTheirDeletion) {
  const Scenario scenario = Parse(R"(
scheduler partitions
quota team-a,team-b min=cpu=4
delete quota team-a,team-b
expect preempted 0
)");
  EXPECT_TRUE(scenario.scheduler_partitions);
  EXPECT_EQ(std::get<Operate>(scenario.steps.at(0).action).target, "team-a,team-b");
  const auto& gone = std::get<Operate>(scenario.steps.at(1).action);
  EXPECT_EQ(gone.verb, Operate::Verb::kDeleteQuota);
  EXPECT_EQ(gone.target, "team-a,team-b");
  EXPECT_EQ(std::get<ExpectCount>(scenario.steps.at(2).action).what, "preempted");
  EXPECT_FALSE(Parse("node n1\nexpect placed 0").scheduler_partitions);
  ExpectErrors({
      {"scheduler waits", "a.scenario:1: expected 'partitions', got 'waits'"},
      {"run 1m\nscheduler partitions\nexpect placed 0",
       "a.scenario:2: 'scheduler' comes before all pods and steps"},
      {"pod p 1g.5gb ends=soon", "a.scenario:1: expected 'late' or 'never', got 'soon'"},
      {"delete group g",
       "a.scenario:1: expected 'pod', 'node', 'quota', 'claim', 'claim-template', 'device-class' "
       "or 'device-taint', got 'group'"},
  });
}

TEST(ParserTest, ReportsInvalidPools) {
  ExpectErrors({
      {"pool a min=3 max=2", "a.scenario:1: a pool has min 0 to max, and max 1 to 10000"},
      {"pool a max=2 nodes=3", "a.scenario:1: a pool begins with no more nodes than max"},
      {"pool a\npool a", "a.scenario:2: pool 'a' is there already"},
      {"run 1m\npool a", "a.scenario:2: pools and the autoscaler come before all pods and steps"},
      {"fail pool a slow",
       "a.scenario:1: expected one of nothing, late, never, partly, wrong, other, refused, got "
       "'slow'"},
      {"budget b x=y most=1", "a.scenario:1: expected max=N or allowed=N, got 'most'"},
      {"pod p near=zone", "a.scenario:1: expected KEY:LABEL=VALUE such as zone:app=db, got 'zone'"},
      {"quota a least=cpu=1",
       "a.scenario:1: expected min=RESOURCE=AMOUNT or max=RESOURCE=AMOUNT, got 'least=cpu=1'"},
      {"expect pool a gone 1", "a.scenario:1: expected one of nodes, coming, wanted, got 'gone'"},
  });
}

TEST(ParserTest, ReadsPods) {
  const Scenario scenario = Parse(R"(
pods 3 web 1g.5gb 2x2g.10gb + 1g.5gb priority=-5 run=90s at=5s tolerate=a=b:NoSchedule,c select=z=1 near=zone:app=db apart=host:app=web,rack:app=web
expect web-1 waiting
)");
  const auto& add = std::get<AddPods>(scenario.steps.at(0).action);
  ASSERT_EQ(add.pods.size(), 3u);
  const PodSpec& pod = add.pods[2];
  EXPECT_EQ(pod.name, "web-3");
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[0].at("2g.10gb"), 2);
  EXPECT_EQ(pod.containers[1].at("1g.5gb"), 1);
  EXPECT_EQ(pod.priority, -5);
  EXPECT_EQ(pod.run, Duration(std::chrono::seconds(90)));
  EXPECT_EQ(pod.tolerations.at(1).op, "Exists");
  EXPECT_EQ(pod.near.at(0).topology_key, "zone");
  EXPECT_EQ(pod.near.at(0).label, "app");
  EXPECT_EQ(pod.apart.at(1).topology_key, "rack");
  EXPECT_EQ(pod.apart.at(1).value, "web");
}

TEST(ParserTest, AllowsNamesOfDeletedPodsAndInOtherNamespaces) {
  Parse("pod p 1g.5gb\npod p 1g.5gb ns=other\ndelete pod p\npod p 1g.5gb\nexpect p waiting");
}

TEST(ParserTest, SkipsByteOrderMark) {
  EXPECT_EQ(Parse("\xef\xbb\xbfnode n1\nexpect placed 0").nodes.size(), 1u);
}

TEST(ParserTest, ReadsExpectations) {
  const Scenario scenario = Parse(R"(
expect a placed on n1|n2 and b pending because NoRoom and destroyed <= 2
expect gpu n1/0: 3g.20gb@4 used, 2x1g.5gb | empty
)");
  ASSERT_EQ(scenario.steps.size(), 4u);
  EXPECT_EQ(std::get<ExpectPod>(scenario.steps[0].action).nodes.size(), 2u);
  EXPECT_EQ(std::get<ExpectPod>(scenario.steps[1].action).code, "NoRoom");
  EXPECT_EQ(std::get<ExpectCount>(scenario.steps[2].action).op, "<=");
  const auto& gpu = std::get<ExpectGpu>(scenario.steps[3].action);
  ASSERT_EQ(gpu.alternatives.size(), 2u);
  EXPECT_EQ(gpu.alternatives[0].size(), 3u);
  EXPECT_EQ(gpu.alternatives[0][0].start, 4);
  EXPECT_TRUE(gpu.alternatives[1].empty());
}

TEST(ParserTest, ErrorsHaveLocationAndExpectedInput) {
  const std::string keywords =
      "allocate, annotate, budget, claim, claim-template, cordon, crash, delete, device-class, "
      "device-taint, fail, group, label, plan, pod, pods, quota, reboot, run, uncordon, "
      "autoscaler, expect, gpu, node, objective, pool, scheduler, seed, starvation";
  ExpectErrors({
      {"\nnode", "a.scenario:2: expected a node name, but the line ends"},
      {"nod n1", "a.scenario:1: expected one of " + keywords + ", got 'nod'"},
      {"no\x1b[2J", "a.scenario:1: expected one of " + keywords + ", got 'no?[2J'"},
      {"node n1 gpus=x", "a.scenario:1: expected a whole number, got 'x'"},
      {"node n1 colour=red",
       "a.scenario:1: expected one of annotations, clients, cordoned, cpu, dra, gpus, hybrid, "
       "labels, memory, model, mps, pods, reset, taints, unmanaged, got 'colour=red'"},
      {"node n1\ngpu 1: empty", "a.scenario:2: expected a GPU of 'n1' (0 to 0), got '1'"},
      {"node n1\ngpu 0: 1g.5gb@0", "a.scenario:2: expected 'used' or 'free', got '1g.5gb@0'"},
      {"node n1\nnode n1", "a.scenario:2: node 'n1' is there already"},
      {"node n1\ngpu 0: empty\ngpu 0: empty", "a.scenario:3: GPU 0 of 'n1' is described already"},
      {"pod p 1g.5gb\npods 2 q 1g.5gb\npod q-2 1g.5gb", "a.scenario:3: pod 'q-2' is there already"},
      {"node n1\npod p 1g.5gb node=n2",
       "a.scenario:2: pod 'p' is bound to node 'n2', which does not exist"},
      {"pod p 0x1g.5gb",
       "a.scenario:1: expected a request such as 1g.5gb or 2x1g.5gb, got '0x1g.5gb'"},
      {"run 999999h", "a.scenario:1: a run lasts at most 1000h"},
      {"pod a 1g.5gb run=soon",
       "a.scenario:1: expected a time such as 30s, 5m or 1h30m, got 'soon'"},
      {"run", "a.scenario:1: expected a time such as 5m, but the line ends"},
      {"expect a happy",
       "a.scenario:1: expected one of placed, pending, waiting, starting, running, succeeded, "
       "failed, gone, got 'happy'"},
      {"expect colours 3",
       "a.scenario:1: expected one of placed, pending, bound, created, destroyed, gpus-touched, "
       "nodes-touched, running, succeeded, waiting, failed, recreated, used, free, evictions, "
       "placeholders, leaving, preempted, devices, got 'colours'"},
      {"expect gpu n1: empty", "a.scenario:1: expected gpu NODE/INDEX: INSTANCES, got 'n1: empty'"},
      {"plan now", "a.scenario:1: expected the end of the line, got 'now'"},
      {"plan", "a.scenario: nothing is expected: add an 'expect' line"},
  });
}

TEST(ParserTest, SurvivesRandomText) {
  const std::string whole = R"(node n1 model=A30 gpus=2 taints=a=b:NoSchedule
gpu 0: 1g.6gb@0 used by a
pods 2 web 1g.5gb + 2x1g.5gb priority=3 run=1m
fail create n1 2
expect gpu n1/0: 2x1g.5gb | empty
expect a placed on n1 and placed <= 2)";
  for (size_t i = 0; i < whole.size(); ++i) {
    (void)ParseScenario(whole.substr(0, i), "a");
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 0x15);
    (void)ParseScenario(broken, "a");
    broken.erase(i, 1);
    (void)ParseScenario(broken, "a");
  }
}

TEST(ParserTest, ReadsClaims) {
  const Scenario scenario = Parse(R"(
node n1 gpus=2 dra
claim c 2x1g.5gb and gpu match gpu.nvidia.com/parentUUID
claim-template t class mig.nvidia.com all selector "device.driver == 'a'" or 3g.20gb tolerate k
device-class x selector "true"
device-taint broken n1/gpu-0 example.com/broken:NoSchedule
pod a template=t,t claim=c node=n1
allocate c n1/gpu-0,n1/gpu-1
delete claim-template t
expect claim c device n1/gpu-0,n1/gpu-1|n1/gpu-1* and claim a pending and devices 2
expect a starting and claim a allocated on n1
)");
  EXPECT_EQ(std::get<ExpectPod>(Parse("node n1\nexpect claim running\n").steps.at(0).action).pod,
            "claim");
  EXPECT_TRUE(scenario.nodes.at(0).dra);
  EXPECT_FALSE(scenario.nodes.at(0).managed);
  const auto& claim = std::get<OnClaims>(scenario.steps.at(0).action);
  EXPECT_EQ(claim.kind, "ResourceClaim");
  const Json& requests = *Find(claim.spec, "devices", "requests");
  EXPECT_EQ(*Find(requests.at(0), "exactly", "count"), 2);
  EXPECT_EQ(FindString(requests.at(1), "exactly", "deviceClassName"), "gpu.nvidia.com");
  EXPECT_EQ(FindString(Find(claim.spec, "devices", "constraints")->at(0), "matchAttribute"),
            "gpu.nvidia.com/parentUUID");
  const auto& made = std::get<OnClaims>(scenario.steps.at(1).action);
  const Json& choice =
      *Find(Find(made.spec, "spec", "devices", "requests")->at(0), "firstAvailable");
  EXPECT_EQ(FindString(choice.at(0), "allocationMode"), "All");
  EXPECT_EQ(FindString(Find(choice.at(0), "selectors")->at(0), "cel", "expression"),
            "device.driver == 'a'");
  EXPECT_EQ(FindString(Find(choice.at(1), "tolerations")->at(0), "key"), "k");
  const auto& taint = std::get<OnClaims>(scenario.steps.at(3).action);
  EXPECT_EQ(FindString(taint.spec, "deviceSelector", "device"), "gpu-0");
  EXPECT_EQ(FindString(taint.spec, "taint", "effect"), "NoSchedule");
  EXPECT_EQ(std::get<AddPods>(scenario.steps.at(4).action).pods.at(0).claims.size(), 3U);
  EXPECT_EQ(std::get<OnClaims>(scenario.steps.at(5).action).devices.size(), 2U);
  EXPECT_EQ(std::get<OnClaims>(scenario.steps.at(6).action).kind, "ResourceClaimTemplate");
  EXPECT_EQ(std::get<ExpectClaim>(scenario.steps.at(7).action).alternatives.size(), 2U);
  const std::pair<std::string, std::string> faults[] = {
      {"claim c", "a profile, 'gpu' or 'class CLASS', but the line ends"},
      {"claim c large", "a profile, 'gpu' or 'class CLASS', got 'large'"},
      {"claim c class", "the name of a device class, but the line ends"},
      {"claim c 1g.5gb selector x", "\"an expression\", got 'x'"},
      {"claim c 1g.5gb selector \"x", "'\"' at the end of the expression, but the line ends"},
      {"allocate c gpu-0", "NODE/DEVICE, got 'gpu-0'"},
      {"device-taint b n1 k", "KEY:EFFECT, got 'k'"},
      {"expect claim c lost", "'allocated', 'pending', 'gone' or 'device', got 'lost'"},
  };
  for (const auto& [line, expected] : faults) {
    EXPECT_EQ(ErrorOf("node n1 dra\n" + line + "\n"), "a.scenario:2: expected " + expected) << line;
  }
}

}  // namespace
}  // namespace nos::sim
