#include "agent/device_plugin/handover.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "kubelet/testing/fake_runtime.h"

namespace nos::agent {
namespace {

using kubelet::Handover;

TEST(HandoverTest, ChoosesWhatTheNodeSupports) {
  struct Case {
    HandoverFacts facts;
    Handover handover;
    std::string why_no_cdi;
  };
  const auto cdi = [](const char* who) {
    return std::string(who) + " may ignore CDI specifications";
  };
  const Case cases[] = {
      {{"containerd://2.1.4", "v1.34.2", true}, Handover::kCdi, ""},
      {{"containerd://2.0.0-k3s1", "v1.29.0+k3s1", true}, Handover::kCdi, ""},
      {{"cri-o://1.34.1", "v1.34.1", true}, Handover::kCdi, ""},
      {{"cri-o://1.27.9", "v1.29.9", true}, Handover::kNodes, cdi("cri-o://1.27.9")},
      // Its switch enable_cdi is not known.
      {{"containerd://1.7.27", "v1.34.2", true}, Handover::kNodes, cdi("containerd://1.7.27")},
      {{"containerd://1.7.27", "v1.34.2", true, true}, Handover::kCdi, ""},
      {{"containerd://2.1.4", "v1.34.2", true, true}, Handover::kCdi, ""},
      {{"containerd://2.1.4", "v1.34.2", true, false},
       Handover::kNodes,
       "containerd://2.1.4 has CDI switched off (enable_cdi)"},
      {{"containerd://2.1.4", "v1.28.15", true}, Handover::kNodes, cdi("kubelet v1.28.15")},
      {{"containerd://2.1.4", "", true}, Handover::kNodes, cdi("kubelet of an unknown version")},
      {{"containerd://x", "v1.34.2", true}, Handover::kNodes, cdi("containerd://x")},
      {{"", "v1.34.2", true}, Handover::kNodes, cdi("the container runtime")},
  };
  for (const Case& one : cases) {
    const HandoverChoice choice = ChooseHandover(one.facts);
    EXPECT_EQ(choice.handover, one.handover) << one.facts.runtime << " " << one.facts.kubelet;
    EXPECT_EQ(WhyNoCdi(one.facts), one.why_no_cdi);
    EXPECT_EQ(choice.why,
              one.why_no_cdi.empty()
                  ? one.facts.runtime + " reads CDI specifications"
                  : one.why_no_cdi + ", so the kubelet passes on device nodes and files");
  }
}

TEST(HandoverTest, NeedsTheHostsFiles) {
  const HandoverChoice choice = ChooseHandover({"containerd://2.1.4", "v1.34.2", false});
  EXPECT_EQ(choice.handover, Handover::kEnvironment);
  EXPECT_EQ(
      choice.why,
      "the agent does not see the host's files (driverRoot), so NVIDIA's container runtime has "
      "to add those of the driver");
}

// A containerd below the root of a host.
class RuntimeTest : public ::testing::Test {
 protected:
  RuntimeTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-runtime-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~RuntimeTest() override { std::filesystem::remove_all(root_); }
  void Serve(const std::string& config, kubelet::GrpcCode code = kubelet::GrpcCode::kOk,
             const std::string& socket = "run/containerd/containerd.sock") {
    ASSERT_TRUE(runtime_.Serve(root_ + "/" + socket, config, code).ok());
  }
  std::optional<bool> Reads(const std::string& runtime = "containerd://2.1.4") {
    return ReadsCdi(runtime, SocketsOfContainerd("", {root_, "/"}));
  }

  std::string root_;
  kubelet::FakeRuntime runtime_;
};

TEST_F(RuntimeTest, SaysWhetherItReadsCdi) {
  EXPECT_EQ(Reads(), std::nullopt) << "no socket";
  Serve(R"({"enableCDI":false})");
  EXPECT_EQ(Reads(), false);
  Serve(R"({"enableCDI":true})");
  EXPECT_EQ(Reads(), true);
  EXPECT_EQ(Reads("cri-o://1.34.1"), std::nullopt);
}

TEST_F(RuntimeTest, IsUnknownWithoutUsableAnswer) {
  for (const char* config : {"", "{", "[]", "{}", R"({"enableCDI":"yes"})"}) {
    Serve(config);
    EXPECT_EQ(Reads(), std::nullopt) << config;
  }
  Serve(R"({"enableCDI":true})", kubelet::GrpcCode::kUnimplemented);
  EXPECT_EQ(Reads(), std::nullopt);
}

TEST_F(RuntimeTest, AsksContainerdOfDistributionFirst) {
  Serve(R"({"enableCDI":false})");
  Serve(R"({"enableCDI":true})", kubelet::GrpcCode::kOk, "run/k3s/containerd/containerd.sock");
  EXPECT_EQ(Reads(), true);
}

TEST(SocketsOfContainerd, AreSeenBelowTheRootOnly) {
  EXPECT_EQ(SocketsOfContainerd("", {"/host", "/"}).back(), "/host/run/containerd/containerd.sock");
  EXPECT_EQ(SocketsOfContainerd("", {}).back(), "/run/containerd/containerd.sock");
  EXPECT_TRUE(SocketsOfContainerd("", {"/host", "/usr/local/nvidia"}).empty());
  EXPECT_EQ(SocketsOfContainerd("/x.sock", {"/host", "/usr/local/nvidia"}),
            std::vector<std::string>{"/x.sock"});
}

}  // namespace
}  // namespace nos::agent
