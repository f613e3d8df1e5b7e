#include "base/process.h"

#include <gtest/gtest.h>

namespace nos {
namespace {

Program Shell(const std::string& script) { return {{"/bin/sh", "-c", script}, OwnEnvironment()}; }

constexpr std::chrono::seconds kLong{20};

TEST(ProcessTest, CapturesOutputAndExitStatus) {
  const auto end = RunProgram(Shell("read line; echo \" $line\"; echo error >&2; exit 3"),
                              {.within = kLong, .input = "hello\n"});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->how, "exit status 3");
  EXPECT_EQ(end->output, "hello\nerror");
}

TEST(ProcessTest, InputEndsAtOnceIfEmpty) {
  const auto end = RunProgram(Shell("cat; kill -9 $$"), {.within = kLong});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->how, "signal 9");
  EXPECT_EQ(end->output, "");
}

TEST(ProcessTest, LeavesErrorOutputIfInherited) {
  const auto end = RunProgram(Shell("echo hidden >&2; echo shown"),
                              {.within = kLong, .error_output = Stderr::kInherit});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->output, "shown");
}

TEST(ProcessTest, KillsProgramAfterTimeLimit) {
  const auto end =
      RunProgram(Shell("exec tail -f /dev/null"), {.within = std::chrono::milliseconds(100)});
  EXPECT_EQ(end.status().code(), Code::kDeadline);
  EXPECT_EQ(end.status().message(), "/bin/sh has not ended within 0.1 s");
}

TEST(ProcessTest, KillsProgramThatClosesItsOutputAndLivesOn) {
  const auto end = RunProgram(Shell("exec >&- 2>&-; exec sleep 1000"),
                              {.within = std::chrono::milliseconds(100)});
  EXPECT_EQ(end.status().code(), Code::kDeadline);
}

TEST(ProcessTest, KillsProgramWithTooMuchOutput) {
  const auto end = RunProgram(Shell("exec yes"), {.within = kLong, .max_output = 10});
  EXPECT_EQ(end.status().code(), Code::kExhausted);
}

TEST(ProcessTest, ExplainsMissingProgram) {
  const auto end = RunProgram({{"/nowhere/tool"}, {}, "install it"}, {.within = kLong});
  EXPECT_EQ(end.status().code(), Code::kPermission);
  EXPECT_EQ(end.status().message(),
            "cannot start /nowhere/tool: No such file or directory; install it");
}

TEST(ProcessTest, StartedProgramIsReapedByItsHandle) {
  const auto handle = StartProgram(Shell("exec tail -f /dev/null"));
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  EXPECT_FALSE(handle->Ended());
  handle->Kill();
  while (!handle->Ended()) {
  }
  EXPECT_EQ(handle->HowItEnded(), "signal 9");
}

}  // namespace
}  // namespace nos
