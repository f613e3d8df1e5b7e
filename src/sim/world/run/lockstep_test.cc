// A world whose controllers reach its server over the network.
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>

#include "kube/http_transport.h"
#include "sim/lockstep_transport.h"
#include "sim/serve.h"
#include "sim/workload.h"
#include "sim/world.h"

namespace nos::sim {
namespace {

constexpr int kManyRequests = 1'000'000;

// The events of the demo's first two minutes. `http`: partitioner and scheduler use HTTP.
std::deque<std::string> Demo(bool http) {
  const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
  const std::vector<GpuSpec> gpus(2, GpuSpec{.model = "A100-40GB"});
  std::optional<kube::HttpTransport> network;
  std::optional<LockstepTransport> transport;
  World world(WorldOptions(), catalogue);
  for (const char* name : {"n1", "n2"}) {
    EXPECT_TRUE(world.AddNode({.name = name, .gpus = gpus}).ok());
  }
  EXPECT_TRUE(world.Boot().ok());
  const std::unique_ptr<net::HttpServer> server = std::move(*ServeApi(world.api()));
  network.emplace(*kube::ParseKubeconfig(KubeconfigFor("127.0.0.1", server->port()), "", ""),
                  kube::HttpOptions{.requests_per_second = kManyRequests, .burst = kManyRequests});
  transport.emplace(*network, world.api());
  world.StartControllers(http ? &*transport : nullptr);
  const auto* model = *FindModel(catalogue, "A100-40GB");
  for (const PodSpec& pod : DemoWorkload({model, model, model, model}, 1)) {
    world.Submit(pod, world.Now() + pod.arrival);
  }
  world.RunFor(std::chrono::minutes(2));
  EXPECT_TRUE(world.violations().empty());
  return world.log().lines();
}

TEST(LockstepTest, HttpRunEqualsRunWithDirectCalls) {
  const std::deque<std::string> direct = Demo(false);
  EXPECT_GT(direct.size(), 50U);
  EXPECT_EQ(Demo(true), direct);
}

}  // namespace
}  // namespace nos::sim
