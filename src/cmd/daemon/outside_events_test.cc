#include "cmd/daemon/outside_events.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/wake_signal.h"

namespace nos::cmd {
namespace {

constexpr auto kLong = std::chrono::seconds(20);

TEST(OutsideEventsTest, SignalRequestsShutdown) {
  WakeSignal bell;
  const OutsideEvents events({}, [&] { bell.Ring(); });
  EXPECT_FALSE(events.StopAsked());
  kill(getpid(), SIGTERM);
  ASSERT_TRUE(bell.Wait(kLong));
  EXPECT_TRUE(events.StopAsked());
}

TEST(OutsideEventsTest, ReportsReplacedFileOnce) {
  std::string pattern = std::filesystem::temp_directory_path() / "nos-events-XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "v1") << "1";
  std::filesystem::create_symlink("v1", folder / "models.yaml");
  WakeSignal bell;
  OutsideEvents events({folder / "models.yaml"}, [&] { bell.Ring(); });
  EXPECT_FALSE(events.TakeFilesChanged());
  // ConfigMap volumes replace files by swapping a symbolic link.
  std::filesystem::create_symlink("v2", folder / "tmp");
  std::filesystem::rename(folder / "tmp", folder / "models.yaml");
  while (!events.TakeFilesChanged()) ASSERT_TRUE(bell.Wait(kLong));
  EXPECT_FALSE(events.StopAsked());
  std::filesystem::remove_all(folder);
}

TEST(OutsideEventsTest, ReportsFileWrittenInPlace) {
  std::string pattern = std::filesystem::temp_directory_path() / "nos-events-XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "config.yaml") << "1";
  WakeSignal bell;
  OutsideEvents events({folder / "config.yaml"}, [&] { bell.Ring(); });
  std::ofstream(folder / "config.yaml", std::ios::app) << "2";
  while (!events.TakeFilesChanged()) ASSERT_TRUE(bell.Wait(kLong));
  std::filesystem::remove_all(folder);
}

TEST(OutsideEventsTest, IgnoresOtherFilesInTheFolder) {
  std::string pattern = std::filesystem::temp_directory_path() / "nos-events-XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "config.yaml") << "1";
  WakeSignal bell;
  OutsideEvents events({folder / "config.yaml"}, [&] { bell.Ring(); });
  std::ofstream(folder / "another") << "2";
  ASSERT_TRUE(bell.Wait(kLong));
  EXPECT_FALSE(events.TakeFilesChanged());
  // ConfigMap volumes rename a file in this way when another key of the ConfigMap changes.
  std::ofstream(folder / "v2") << "1";
  std::filesystem::rename(folder / "v2", folder / "config.yaml");
  ASSERT_TRUE(bell.Wait(kLong));
  EXPECT_FALSE(events.TakeFilesChanged());
  std::filesystem::remove_all(folder);
}

TEST(OutsideEventsTest, SighupCountsAsFileChange) {
  WakeSignal bell;
  OutsideEvents events({}, [&] { bell.Ring(); });
  kill(getpid(), SIGHUP);
  ASSERT_TRUE(bell.Wait(kLong));
  EXPECT_TRUE(events.TakeFilesChanged());
  EXPECT_FALSE(events.TakeFilesChanged());
  EXPECT_FALSE(events.StopAsked());
}

TEST(OutsideEventsTest, SecondSignalEndsProcessAtOnce) {
  EXPECT_EXIT(
      {
        WakeSignal bell;
        const OutsideEvents events({}, [&] { bell.Ring(); });
        kill(getpid(), SIGTERM);
        bell.Wait(kLong);
        kill(getpid(), SIGTERM);
        bell.Wait(kLong);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace nos::cmd
