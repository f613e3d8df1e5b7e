#include "base/boot_clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace nos {
namespace {

constexpr int kSkipped = 77;

// Exit code of a child for which the machine has slept for an hour: children of a process with a
// new time namespace see an offset of the clocks (time_namespaces(7)), which is what a suspension
// does.
int AfterSleep(const BootClock& boot, const SteadyClock& steady) {
  if (unshare(CLONE_NEWTIME) != 0) return kSkipped;
  constexpr std::string_view kHour = "boottime 3600 0\n";
  {
    const UniqueFd offsets(open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC));
    if (write(offsets.get(), kHour.data(), kHour.size()) < 0) return kSkipped;
  }
  const pid_t child = fork();
  if (child == 0) {
    const Duration slept = boot.Now() - SystemClock().Now();
    const Duration steadily = steady.Now() - SystemClock().Now();
    const bool right = slept > std::chrono::minutes(59) && steadily < std::chrono::minutes(1);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

TEST(BootClockTest, CountsSuspension) {
  const BootClock boot;
  const SteadyClock steady;
  const pid_t child = fork();  // the namespace is for this child alone
  if (child == 0) _exit(AfterSleep(boot, steady));
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "needs the right to make a time namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace nos
