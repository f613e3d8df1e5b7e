#include "device/mps_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::device {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;

constexpr const char* kA = "GPU-aaaaaaaa-0000-0000-0000-000000000000";

TEST(MpsTool, ReadsProcessIdsOnly) {
  EXPECT_EQ(PidsIn("123\n 45 0\n"), (std::vector<pid_t>{123, 45, 0}));
  EXPECT_THAT(PidsIn("none -1 1.5 99999999999999999999 4194305 12x"), IsEmpty());
}

TEST(MpsTool, CommandsHaveADeadline) {
  const MpsTool tool({"sleep", kA, "/tmp", "/tmp", false});
  EXPECT_EQ(tool.Ask("get_server_list", seconds(20)).status().code(), Code::kUnavailable);
  const MpsTool mute({"cat", kA, "/tmp", "/tmp", false});
  EXPECT_EQ(mute.Ask("get_server_list", seconds(20)).value(), "get_server_list");
  const MpsTool endless({"yes", kA, "/tmp", "/tmp", false});
  EXPECT_EQ(endless.Ask("get_server_list", seconds(20)).status().code(), Code::kDeadline);
  EXPECT_EQ(MpsTool({"/nowhere", kA, "/tmp", "/tmp", false}).Ask("x", seconds(1)).status().code(),
            Code::kPermission);
}

}  // namespace
}  // namespace nos::device
