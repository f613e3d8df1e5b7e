#include "agent/device_plugin/handover.h"

#include <gmock/gmock.h>

#include <string>

namespace nos::agent {
namespace {

using kubelet::Handover;
using ::testing::HasSubstr;

TEST(HandoverTest, ChoosesWhatTheNodeSupports) {
  struct Case {
    HandoverFacts facts;
    Handover handover;
    const char* why;
  };
  const Case cases[] = {
      {{"containerd://2.1.4", "v1.34.2", true}, Handover::kCdi, "containerd://2.1.4 reads CDI"},
      {{"containerd://2.0.0-k3s1", "v1.29.0+k3s1", true}, Handover::kCdi, "reads CDI"},
      {{"cri-o://1.34.1", "v1.34.1", true}, Handover::kCdi, "reads CDI"},
      {{"cri-o://1.27.9", "v1.29.9", true}, Handover::kNodes, "cri-o://1.27.9 may ignore CDI"},
      // Its switch enable_cdi cannot be seen.
      {{"containerd://1.7.27", "v1.34.2", true},
       Handover::kNodes,
       "containerd://1.7.27 may ignore"},
      {{"containerd://2.1.4", "v1.28.15", true}, Handover::kNodes, "kubelet v1.28.15 may ignore"},
      {{"containerd://2.1.4", "", true}, Handover::kNodes, "of an unknown version may ignore"},
      {{"containerd://x", "v1.34.2", true}, Handover::kNodes, "containerd://x may ignore CDI"},
      {{"", "v1.34.2", true}, Handover::kNodes, "the container runtime may ignore CDI"},
      {{"containerd://2.1.4", "v1.34.2", false}, Handover::kEnvironment, "host's files"},
  };
  for (const Case& one : cases) {
    const HandoverChoice choice = ChooseHandover(one.facts);
    EXPECT_EQ(choice.handover, one.handover) << one.facts.runtime << " " << one.facts.kubelet;
    EXPECT_THAT(choice.why, HasSubstr(one.why));
  }
}

}  // namespace
}  // namespace nos::agent
