#include "agent/sharing/mps/limited_folder.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

namespace nos::agent {
namespace {

constexpr int64_t kBytes = 1 << 20;
constexpr int kSkipped = 77;

int64_t SizeOf(const std::string& folder) {
  struct statvfs size{};
  if (statvfs(folder.c_str(), &size) != 0) return -1;
  return static_cast<int64_t>(size.f_blocks * size.f_frsize);
}

// Mounts are those of a child process. `host` is a folder of the host, and `here` the place at
// which a container sees it.
class LimitFolderTest : public ::testing::Test {
 protected:
  LimitFolderTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-limit-XXXXXX";
    root_ = mkdtemp(pattern.data());
    host_ = root_ / "host";
    here_ = root_ / "here";
    std::filesystem::create_directories(host_);
    std::filesystem::create_directories(here_);
  }
  ~LimitFolderTest() override { std::filesystem::remove_all(root_); }

  // `propagation` is that of the mount at `here`. A failure of `run` is that of the test.
  void InContainer(uint64_t propagation, const std::function<bool()>& run) {
    const pid_t child = fork();
    if (child == 0) {
      if (unshare(CLONE_NEWNS) != 0) _exit(kSkipped);
      const bool ready = mount("", "/", "", MS_REC | MS_PRIVATE, "") == 0 &&
                         mount(root_.c_str(), root_.c_str(), "", MS_BIND, "") == 0 &&
                         mount("", root_.c_str(), "", MS_SHARED, "") == 0 &&
                         mount(host_.c_str(), here_.c_str(), "", MS_BIND, "") == 0 &&
                         mount("", here_.c_str(), "", propagation, "") == 0;
      _exit(!ready ? kSkipped : run() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "mounting is not permitted here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }

  std::filesystem::path root_, host_, here_;
};

TEST_F(LimitFolderTest, HostSeesLimit) {
  InContainer(MS_SHARED, [&] {
    return LimitFolder(here_, {kBytes, 01777}).ok() && SizeOf(here_) == kBytes &&
           SizeOf(host_) == kBytes;
  });
}

TEST_F(LimitFolderTest, NoLinkOfContainerIsFollowed) {
  const std::filesystem::path others = root_ / "others", container = root_ / "container";
  std::ofstream(others) << "mine";
  std::filesystem::create_directories(container);
  InContainer(MS_SHARED, [&] {
    if (!LimitFolder(here_, {kBytes, 01777}).ok()) return false;
    if (mount(host_.c_str(), container.c_str(), "", MS_BIND, "") != 0) return false;
    std::filesystem::create_symlink(others, container / "link");
    for (const std::filesystem::path& folder : {here_, host_, container}) {
      if (std::ofstream(folder / "link").is_open()) return false;
    }
    return std::ofstream(here_ / "file").is_open() && std::filesystem::exists(container / "file");
  });
  std::string text;
  std::ifstream(others) >> text;
  EXPECT_EQ(text, "mine");
}

TEST_F(LimitFolderTest, NextProcessKeepsContent) {
  InContainer(MS_SHARED, [&] {
    if (!LimitFolder(here_, {kBytes, 01777}).ok()) return false;
    std::ofstream(here_ / "of-a-client") << "x";
    return LimitFolder(here_, {kBytes, 01777}).ok() &&
           std::filesystem::exists(here_ / "of-a-client");
  });
}

TEST_F(LimitFolderTest, NextProcessMayChangeSize) {
  InContainer(MS_SHARED, [&] {
    if (!LimitFolder(here_, {kBytes, 01777}).ok()) return false;
    const FolderLimit larger{2 * kBytes, 01777, /*may_mount=*/false};
    return LimitFolder(here_, larger).ok() && SizeOf(host_) == 2 * kBytes;
  });
}

TEST_F(LimitFolderTest, FolderInUseStays) {
  InContainer(MS_SHARED, [&] {
    const FolderLimit limit{kBytes, 01777, /*may_mount=*/false};
    return LimitFolder(here_, limit).code() == Code::kUnimplemented && SizeOf(here_) != kBytes;
  });
}

TEST_F(LimitFolderTest, DoesNotHideFolderFromContainers) {
  InContainer(MS_PRIVATE, [&] {
    return LimitFolder(here_, {kBytes, 01777}).code() == Code::kUnimplemented &&
           SizeOf(here_) != kBytes;
  });
  EXPECT_EQ(LimitFolder(host_, {kBytes, 01777}).code(), Code::kUnimplemented);
}

}  // namespace
}  // namespace nos::agent
