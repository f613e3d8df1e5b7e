#include "agent/device_plugin/handover.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
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
      {{"containerd://2.1.4", true, false}, Handover::kCdi, "containerd://2.1.4 reads CDI"},
      {{"containerd://2.0.0-k3s1", true, false}, Handover::kCdi, "reads CDI"},
      {{"cri-o://1.34.1", true, false}, Handover::kCdi, "reads CDI"},
      {{"cri-o://1.27.9", true, false}, Handover::kNodes, "may ignore CDI"},
      {{"containerd://1.7.27", true, false}, Handover::kNodes, "may ignore CDI"},
      {{"containerd://1.7.27", true, true}, Handover::kCdi, "other programs write"},
      {{"containerd://x", true, false}, Handover::kNodes, "may ignore CDI"},
      {{"", true, false}, Handover::kNodes, "the container runtime may ignore CDI"},
      {{"containerd://2.1.4", false, true}, Handover::kEnvironment, "driver's files"},
  };
  for (const Case& one : cases) {
    const HandoverChoice choice = ChooseHandover(one.facts);
    EXPECT_EQ(choice.handover, one.handover) << one.facts.runtime;
    EXPECT_THAT(choice.why, HasSubstr(one.why));
  }
}

TEST(HandoverTest, OnlySpecificationsOfOtherProgramsCount) {
  namespace fs = std::filesystem;
  std::string pattern = fs::temp_directory_path() / "nos-cdi-XXXXXX";
  const fs::path folder = mkdtemp(pattern.data());
  EXPECT_FALSE(HasSpecsOfOthers(folder / "missing"));
  for (const char* name : {"nos.nebuly.com-gpu.json", ".nos.nebuly.com-gpu.json.new", "README"}) {
    std::ofstream(folder / name) << "{}";
  }
  EXPECT_FALSE(HasSpecsOfOthers(folder));
  std::ofstream(folder / "nvidia.yaml") << "{}";
  EXPECT_TRUE(HasSpecsOfOthers(folder));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace nos::agent
