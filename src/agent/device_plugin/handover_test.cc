#include "agent/device_plugin/handover.h"

#include <gtest/gtest.h>

#include <string>

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
      // Its switch enable_cdi cannot be seen.
      {{"containerd://1.7.27", "v1.34.2", true}, Handover::kNodes, cdi("containerd://1.7.27")},
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

}  // namespace
}  // namespace nos::agent
