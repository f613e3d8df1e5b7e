#include "telemetryserver/ingest/envelope_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace nos::telemetryserver {
namespace {

constexpr Duration kMaxWait = std::chrono::minutes(1);

TEST(EnvelopeQueueTest, PutReturnsTheAnswer) {
  EnvelopeQueue queue(kMaxWait);
  Receipt receipt;
  std::thread reporter([&] { receipt = queue.Put({}, "body"); });
  EnvelopeQueue::Batch batch;
  while (batch.empty()) ASSERT_TRUE(queue.Take(false, batch));
  batch.front()->receipt.sequence = 7;
  queue.Answer(batch, Status::Ok());
  reporter.join();
  EXPECT_TRUE(receipt.status.ok());
  EXPECT_EQ(receipt.sequence, 7);
}

TEST(EnvelopeQueueTest, FailureOfTheBatchIsTheAnswer) {
  EnvelopeQueue queue(kMaxWait);
  Receipt receipt;
  std::thread reporter([&] { receipt = queue.Put({}, "body"); });
  EnvelopeQueue::Batch batch;
  while (batch.empty()) ASSERT_TRUE(queue.Take(false, batch));
  batch.front()->receipt.sequence = 7;
  queue.Answer(batch, Status(Code::kUnavailable, "disk full"));
  reporter.join();
  EXPECT_EQ(receipt.status.code(), Code::kUnavailable);
  EXPECT_EQ(receipt.sequence, 0);
}

TEST(EnvelopeQueueTest, EndsOnceStoppedAndEmpty) {
  EnvelopeQueue queue(kMaxWait);
  queue.Stop();
  EXPECT_EQ(queue.Put({}, "body").status.code(), Code::kUnavailable);
  EnvelopeQueue::Batch batch;
  EXPECT_FALSE(queue.Take(false, batch));
}

TEST(EnvelopeQueueTest, SettleWaitsForRoundThatStartsLater) {
  EnvelopeQueue queue(kMaxWait);
  EnvelopeQueue::Batch batch;
  ASSERT_TRUE(queue.Take(true, batch));
  std::thread caller([&] { queue.Settle(); });
  while (!queue.settling()) std::this_thread::yield();
  queue.EndRound(true);
  EXPECT_TRUE(queue.settling());
  ASSERT_TRUE(queue.Take(true, batch));
  queue.EndRound(true);
  caller.join();
  EXPECT_FALSE(queue.settling());
}

TEST(EnvelopeQueueTest, GivesUpEnvelopeThatIsNotTakenInTime) {
  EnvelopeQueue queue(std::chrono::milliseconds(1));
  EXPECT_EQ(queue.Put({}, "body").status.code(), Code::kUnavailable);
  EXPECT_TRUE(queue.empty()) << "it is not written later";
}

TEST(EnvelopeQueueTest, GivesUpEnvelopeWhoseRoundDoesNotEnd) {
  EnvelopeQueue queue(std::chrono::milliseconds(100));
  Receipt receipt;
  std::thread reporter([&] { receipt = queue.Put({}, "body"); });
  EnvelopeQueue::Batch batch;
  while (batch.empty()) ASSERT_TRUE(queue.Take(false, batch));
  reporter.join();
  EXPECT_EQ(receipt.status.code(), Code::kUnavailable);
  batch.front()->receipt.sequence = 7;
  queue.Answer(batch, Status::Ok());
}

}  // namespace
}  // namespace nos::telemetryserver
