#include "scheduling/plugins/node_ports/plugin.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::HostPort;

cluster::Pod Taking(std::vector<HostPort> ports, const std::string& node = "") {
  auto pod = testing::PodOf("p" + node, {}, node);
  pod.containers[0].host_ports = std::move(ports);
  return pod;
}

Verdict Filter(const std::vector<HostPort>& wanted, const std::vector<HostPort>& taken) {
  const NodePorts plugin;
  const auto snapshot = testing::Snap({testing::NodeOf("a")}, {Taking(taken, "a")});
  CycleState state;
  const bool skip = plugin.PreFilter(Taking(wanted), snapshot, state).skip;
  EXPECT_EQ(skip, wanted.empty());
  EXPECT_EQ(plugin.Concerns(Taking(wanted)), !wanted.empty());
  const Verdict verdict = plugin.Filter(state, Taking(wanted), snapshot.node(0));
  EXPECT_EQ(verdict.fits(), plugin.Filter({}, Taking(wanted), snapshot.node(0)).fits());
  return verdict;
}

TEST(NodePortsTest, ComparesAddressProtocolAndPort) {
  EXPECT_TRUE(Filter({}, {}).fits());
  EXPECT_TRUE(Filter({}, {{80, "", "TCP"}}).fits());
  EXPECT_TRUE(Filter({{80, "127.0.0.1", "UDP"}}, {{80, "127.0.0.2", "UDP"}}).fits());
  EXPECT_TRUE(Filter({{80, "127.0.0.1", "UDP"}}, {{80, "127.0.0.1", "TCP"}}).fits());
  EXPECT_TRUE(Filter({{80, "127.0.0.1", "UDP"}}, {{81, "127.0.0.1", "UDP"}}).fits());
  EXPECT_FALSE(Filter({{80, "127.0.0.1", "UDP"}}, {{80, "127.0.0.1", "UDP"}}).fits());
  EXPECT_FALSE(Filter({{80, "127.0.0.1", ""}}, {{80, "127.0.0.1", "TCP"}}).fits());
  EXPECT_FALSE(Filter({{80, "", "TCP"}}, {{80, "127.0.0.1", "TCP"}}).fits());
  EXPECT_FALSE(Filter({{80, "127.0.0.1", "TCP"}}, {{80, "0.0.0.0", "TCP"}}).fits());
  EXPECT_FALSE(Filter({{80, "0.0.0.0", "TCP"}}, {{80, "", "TCP"}}).fits());
  EXPECT_TRUE(Filter({{80, "0.0.0.0", "TCP"}}, {{80, "127.0.0.1", "UDP"}}).fits());
  EXPECT_FALSE(
      Filter({{79, "", "TCP"}, {80, "", "TCP"}}, {{81, "", "TCP"}, {80, "", "TCP"}}).fits());
  const Verdict verdict = Filter({{80, "", "TCP"}}, {{80, "", "TCP"}});
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnschedulable);
  EXPECT_EQ(verdict.message, "node(s) didn't have free ports for the requested pod ports");
}

TEST(NodePortsTest, CountsPortsOfSidecarsButNotOfInitContainers) {
  const NodePorts plugin;
  auto pod = testing::PodOf("p");
  pod.init_containers = {{"init", {}, {}, false, "", {{80, "", "TCP"}}}};
  EXPECT_FALSE(plugin.Concerns(pod));
  pod.init_containers[0].restart_always = true;
  EXPECT_TRUE(plugin.Concerns(pod));
}

TEST(NodePortsTest, OnlyNewNodesAndPodsWithThePortWakePod) {
  const NodePorts plugin;
  const auto pod = Taking({{80, "", "TCP"}});
  const auto event = [](ClusterEvent::Kind kind, const cluster::Pod& other) {
    return ClusterEvent{kind, nullptr, nullptr, std::make_shared<cluster::Pod>(other), nullptr};
  };
  using enum ClusterEvent::Kind;
  EXPECT_TRUE(plugin.MayHelp({kNodeAdded}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged}, pod));
  EXPECT_FALSE(plugin.MayHelp({kContext}, pod));
  EXPECT_TRUE(plugin.MayHelp(event(kPodLeft, Taking({{80, "1.2.3.4", "TCP"}}, "a")), pod));
  EXPECT_FALSE(plugin.MayHelp(event(kPodLeft, Taking({{81, "", "TCP"}}, "a")), pod));
  EXPECT_FALSE(plugin.MayHelp(event(kPodLeft, testing::PodOf("q", {}, "a")), pod));
  EXPECT_FALSE(plugin.MayHelp(event(kPodChanged, Taking({{80, "", "TCP"}}, "a")), pod));
}

}  // namespace
}  // namespace nos::scheduling
