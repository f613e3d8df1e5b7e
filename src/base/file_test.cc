#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/task_thread.h"

namespace nos {
namespace {

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-file-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(FileTest, ReplacesTheWholeFile) {
  const std::string path = folder_ / "a";
  ASSERT_TRUE(ReplaceFile(path, std::string(100'000, 'x')).ok());
  ASSERT_TRUE(ReplaceFile(path, "short").ok());
  EXPECT_EQ(ReadFile(path).value(), "short");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "no draft stays";
}

TEST_F(FileTest, KeepsTheFileIfItCannotBeReplaced) {
  const Status missing = ReplaceFile(folder_ / "none/a", "x");
  EXPECT_EQ(missing.code(), Code::kUnavailable);
  EXPECT_NE(missing.message().find("none/a"), std::string::npos);
  // A folder of that name cannot be replaced by a file.
  std::filesystem::create_directories(folder_ / "b/c");
  EXPECT_FALSE(ReplaceFile(folder_ / "b", "x").ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "b/c"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".b.new"));
}

// A link that another program left at the draft's name is not followed.
TEST_F(FileTest, FollowsNoLink) {
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / ".a.new");
  EXPECT_FALSE(ReplaceFile(folder_ / "a", "x").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
}

TEST(TaskThreadTest, RunsInOrderAndRefusesTooMuch) {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false, entered = false;
  std::string order;
  TaskThread thread(2);
  ASSERT_TRUE(thread.Post([&] {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
  }));
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return entered; });
  }
  const auto add = [&](char c) {
    return thread.Post([&, c] {
      const std::lock_guard lock(mutex);
      order += c;
      changed.notify_all();
    });
  };
  EXPECT_TRUE(add('a'));
  EXPECT_TRUE(add('b'));
  EXPECT_FALSE(add('c')) << "two wait already";
  std::unique_lock lock(mutex);
  open = true;
  changed.notify_all();
  changed.wait(lock, [&] { return order.size() == 2; });
  EXPECT_EQ(order, "ab");
}

}  // namespace
}  // namespace nos
