#include "controllers/quota/patch_queue.h"

#include <gtest/gtest.h>

namespace nos::controllers {
namespace {

constexpr Time kNow{std::chrono::hours(500'000)};

TEST(PatchQueueTest, RetriesFailedWriteAfterBackOff) {
  PatchQueue due("label", nullptr);
  due.Add("ml/a", kNow);
  ASSERT_EQ(due.Take(kNow), "ml/a");
  EXPECT_FALSE(due.Settle("ml/a", Status(Code::kUnavailable, "busy"), kNow));
  EXPECT_TRUE(due.Failing("ml/a"));
  EXPECT_GT(due.NextDue(), kNow);
  EXPECT_LT(due.NextDue(), Time::max());
}

TEST(PatchQueueTest, DropsWrittenAndDeletedObjects) {
  PatchQueue due("label", nullptr);
  due.Add("ml/a", kNow);
  due.Add("ml/b", kNow);
  const auto first = due.Take(kNow), second = due.Take(kNow);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(due.Settle(*first, Status::Ok(), kNow));
  EXPECT_FALSE(due.Settle(*second, Status(Code::kNotFound, "gone"), kNow));
  EXPECT_FALSE(due.Failing(*second));
  EXPECT_EQ(due.NextDue(), Time::max());
}

}  // namespace
}  // namespace nos::controllers
