#include "cmd/sandbox/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

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
  ViewModel model = Observe(world_, world_.Now());
  ASSERT_EQ(model.waiting.size(), 1U);
  EXPECT_EQ(model.waiting[0].why, "waiting for scheduling gates: [example.com/approval]");
  EXPECT_EQ(model.waiting[0].remedy,
            "wait until the component that set its scheduling gates removes them: "
            "example.com/approval");
}

TEST_F(SandboxModelTest, CountsInNamesOfNodes) {
  Start({"node-1", "node-10", "node-2"});
  std::vector<std::string> nodes;
  for (const GpuRow& gpu : Observe(world_, world_.Now()).gpus) nodes.push_back(gpu.node);
  EXPECT_THAT(nodes, ElementsAre("node-1", "node-2", "node-10"));
}

}  // namespace
}  // namespace nos::cmd
