#include "cmd/sandbox/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/millis.h"
#include "cmd/sandbox/latest_decisions.h"

namespace nos::cmd {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

class SandboxModelTest : public testing::Test {
 protected:
  SandboxModelTest() : world_({}, gpu::Catalogue::Builtin()) { SetLogLevel(LogLevel::kError); }

  void Start(const std::vector<std::string>& nodes) {
    for (const std::string& name : nodes) {
      const Status added = world_.AddNode({.name = name, .gpus = {{"A100-40GB"}}});
      ASSERT_TRUE(added.ok()) << added.ToString();
    }
    const Status booted = world_.Boot();
    ASSERT_TRUE(booted.ok()) << booted.ToString();
    world_.StartControllers();
  }
  void Create(std::string_view manifest) {
    world_.Submit(ParseJson(manifest).value(), world_.Now());
  }

  sim::World world_;
};

constexpr std::string_view kGated = R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "gated", "namespace": "default"},
    "spec": {"schedulingGates": [{"name": "example.com/approval"}],
             "containers": [{"name": "c", "image": "i",
                             "resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}]}})";

TEST_F(SandboxModelTest, PodWithSchedulingGatesNamesThem) {
  Start({"n"});
  Create(kGated);
  world_.RunFor(seconds(5));
  ViewModel model = Observe(world_, world_.Now(), {});
  ASSERT_EQ(model.waiting.size(), 1U);
  EXPECT_EQ(model.waiting[0].why, "waiting for scheduling gates: [example.com/approval]");
  EXPECT_EQ(model.waiting[0].remedy,
            "wait until the component that set its scheduling gates removes them: "
            "example.com/approval");
}

TEST_F(SandboxModelTest, CountsInNamesOfNodes) {
  Start({"node-1", "node-10", "node-2"});
  std::vector<std::string> nodes;
  for (const GpuRow& gpu : Observe(world_, world_.Now(), {}).gpus) nodes.push_back(gpu.node);
  EXPECT_THAT(nodes, ElementsAre("node-1", "node-2", "node-10"));
}

TEST_F(SandboxModelTest, DecisionsAreTheStoriesOfTheTelemetryServer) {
  Start({"n"});
  LatestDecisions latest;
  const auto plan = [&](const std::string& id, const std::string& state, int64_t after) {
    const int64_t at = ToMillis(world_.Now()) / 60'000 * 60'000 + after;
    latest.Add({{"kind", "decision"},
                {"id", id},
                {"type", "plan"},
                {"state", state},
                {"at", at},
                {"made", at},
                {"pods", {{{"namespace", "a"}, {"name", "web-" + id}}}},
                {"nodes",
                 {{{"node", "n"},
                   {"before", JsonArray()},
                   {"after", {{{"index", 0}, {"profiles", {{"1g.5gb", 1}}}}}}}}}});
  };
  plan("1", "planned", 1000);
  plan("1", "applied", 1000);
  plan("2", "applied", 2000);
  latest.Add({{"kind", "pod"}, {"id", "3"}});
  const ViewModel model = Observe(world_, world_.Now(), latest.All());
  ASSERT_EQ(model.decisions.size(), 1U);
  EXPECT_EQ(model.decisions[0].text, "a/web (2 pods) got 2 × 1g.5gb on n");
}

TEST(LatestDecisionsTest, ForgetsTheOldest) {
  LatestDecisions latest;
  for (size_t i = 0; i < LatestDecisions::kMax + 5; ++i) {
    latest.Add({{"kind", "decision"}, {"id", "d" + std::to_string(10'000 + i)}});
  }
  const std::vector<Json> all = latest.All();
  ASSERT_EQ(all.size(), LatestDecisions::kMax);
  EXPECT_EQ(FindString(all.front(), "id"), "d10005");
}

}  // namespace
}  // namespace nos::cmd
