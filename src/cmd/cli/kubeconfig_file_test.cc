#include "cmd/cli/kubeconfig_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace nos::cmd {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms kMine = fs::perms::owner_read | fs::perms::owner_write;

class KubeconfigFileTest : public testing::Test {
 protected:
  KubeconfigFileTest() {
    std::string name = (fs::temp_directory_path() / "nos-kubeconfig-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "config";
  }
  ~KubeconfigFileTest() override { fs::remove_all(folder_); }

  static void Put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string Get(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string Error() {
    const auto file = KubeconfigFile::Write(path_, 1);
    return file.ok() ? "" : file.status().message();
  }
  std::string Refusal(const std::string& why) const {
    return "cannot write the kubeconfig '" + path_.string() + "': " + why +
           "; choose another file with --kubeconfig";
  }

  fs::path folder_, path_;
};

TEST_F(KubeconfigFileTest, FileIsPrivateAndRemovedWithObject) {
  {
    const auto file = KubeconfigFile::Write(path_, 4711);
    ASSERT_TRUE(file.ok());
    EXPECT_NE(Get(path_).find("4711"), std::string::npos);
    struct stat info = {};
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_EQ(Error(), Refusal("it belongs to a running sandbox"));
  }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(KubeconfigFileTest, TakesOverFileOfEndedSandbox) {
  Put(path_, "# written by nos sandbox; removed when it ends\nold");
  fs::permissions(path_, kMine);
  const auto file = KubeconfigFile::Write(path_, 4711);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(Get(path_).find("old"), std::string::npos);
}

TEST_F(KubeconfigFileTest, RejectsLinksAndFilesWritableByOthers) {
  const fs::path other = folder_ / "other";
  Put(other, "");
  fs::create_symlink(other, path_);
  EXPECT_EQ(Error(), Refusal("it is a symbolic link"));
  fs::remove(path_);
  fs::create_hard_link(other, path_);
  EXPECT_EQ(Error(), Refusal("it has hard links or was just replaced"));
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_NE(Error(), "");
  fs::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Error(), Refusal("it is not a regular file"));
  fs::remove(path_);
  Put(path_, "");
  fs::permissions(path_, kMine | fs::perms::group_write | fs::perms::others_write);
  EXPECT_EQ(Error(), Refusal("it is writable by other users"));
  fs::permissions(path_, kMine);
  Put(path_, "mine");
  EXPECT_EQ(Error(), Refusal("it exists and is not a sandbox's kubeconfig"));
  EXPECT_EQ(Get(path_), "mine");
  EXPECT_EQ(Get(other), "");
}

TEST_F(KubeconfigFileTest, RejectsFileOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Put(path_, "");
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  EXPECT_EQ(Error(), Refusal("it belongs to another user"));
  EXPECT_TRUE(fs::exists(path_));
}

}  // namespace
}  // namespace nos::cmd
