#include "cmd/daemon/delivery.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace nos::cmd {
namespace {

namespace fs = std::filesystem;

// A spool folder shared by several processes, and a server that does not answer.
class DeliveryTest : public ::testing::Test {
 protected:
  DeliveryTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    config_.endpoint = "http://127.0.0.1:1";
    config_.cluster = "prod";
    config_.spool_folder = ::testing::TempDir() + "nos-delivery-" + test->name();
    config_.spool_shared = true;
    fs::remove_all(config_.spool_folder);
  }
  ~DeliveryTest() override { fs::remove_all(config_.spool_folder); }
  std::unique_ptr<Delivery> Make() {
    auto delivery = Delivery::For(config_, "cluster", metrics_);
    EXPECT_TRUE(delivery.ok()) << delivery.status().ToString();
    return delivery.ok() ? *std::move(delivery) : nullptr;
  }
  // Number of envelopes in one of the folders.
  int Waiting(const std::string& folder) const {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(config_.spool_folder + "/" + folder)) {
      files += entry.path().extension() == ".gz" ? 1 : 0;
    }
    return files;
  }

  const std::vector<std::string> records_{R"({"kind":"x","at":1})"};
  DeliveryConfig config_;
  Metrics metrics_;
};

TEST_F(DeliveryTest, SharedFolderGivesEachProcessASpoolAndReusesOldOnes) {
  auto first = Make(), second = Make();
  ASSERT_TRUE(first->Add(records_).ok());
  ASSERT_TRUE(second->Add(records_).ok());
  ASSERT_TRUE(second->Add(records_).ok());
  EXPECT_EQ(Waiting("0"), 1);
  EXPECT_EQ(Waiting("1"), 2);
  first.reset();
  auto next = Make();
  ASSERT_TRUE(next->Add(records_).ok());
  EXPECT_EQ(Waiting("0"), 2) << "in addition to the envelope of the first process";
  EXPECT_EQ(Waiting("1"), 2);
}

TEST_F(DeliveryTest, UnsharedFolderAllowsOneProcess) {
  config_.spool_shared = false;
  auto first = Make(), second = Make();
  ASSERT_TRUE(first->Open().ok());
  EXPECT_EQ(second->Open().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace nos::cmd
