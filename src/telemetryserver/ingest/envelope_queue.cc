#include "telemetryserver/ingest/envelope_queue.h"

#include <chrono>
#include <utility>

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxQueued = 1000;
constexpr size_t kMaxQueuedBytes = size_t{256} << 20;
constexpr size_t kMaxBatch = 256;
constexpr auto kMaxWait = std::chrono::milliseconds(500);

}  // namespace

Receipt EnvelopeQueue::Put(telemetry::Envelope envelope, std::string body) {
  const auto waiting = std::make_shared<Waiting>(Waiting{std::move(envelope), std::move(body)});
  std::unique_lock lock(mutex_);
  if (stop_) return {Status(Code::kUnavailable, "the server ends"), 0};
  if (queue_.size() >= kMaxQueued || bytes_ > kMaxQueuedBytes) {
    return {
        Status(Code::kExhausted, "too many envelopes wait to be written: retry in some seconds"),
        0};
  }
  bytes_ += waiting->body.size();
  queue_.push_back(waiting);
  changed_.notify_one();
  if (answered_.wait_for(lock, max_wait_, [&] { return waiting->done; })) return waiting->receipt;
  // The disk stalls. The thread is needed by readers, and the reporter still has the envelope.
  if (std::erase(queue_, waiting) > 0) bytes_ -= waiting->body.size();
  return {Status(Code::kUnavailable, "the store does not answer in time: retry in some seconds"),
          0};
}

void EnvelopeQueue::Settle() {
  std::unique_lock lock(mutex_);
  settle_ = true;
  changed_.notify_one();
  answered_.wait(lock, [&] { return !settle_; });
}

void EnvelopeQueue::Stop() {
  const std::scoped_lock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

bool EnvelopeQueue::Take(bool busy, Batch& batch) {
  std::unique_lock lock(mutex_);
  if (!busy) {
    changed_.wait_for(lock, kMaxWait, [&] { return stop_ || settle_ || !queue_.empty(); });
  }
  settling_ = settle_;
  while (!queue_.empty() && batch.size() < kMaxBatch) {
    bytes_ -= queue_.front()->body.size();
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return !stop_ || !batch.empty();
}

void EnvelopeQueue::Answer(const Batch& batch, const Status& status) {
  const std::scoped_lock lock(mutex_);
  for (const auto& waiting : batch) {
    if (!status.ok()) waiting->receipt = {status, 0};
    waiting->done = true;
  }
  answered_.notify_all();
}

bool EnvelopeQueue::empty() const {
  const std::scoped_lock lock(mutex_);
  return queue_.empty();
}

bool EnvelopeQueue::settling() const {
  const std::scoped_lock lock(mutex_);
  return settle_;
}

void EnvelopeQueue::EndRound(bool settled) {
  const std::scoped_lock lock(mutex_);
  // A request for Settle during a round is handled by the next round.
  if (!settling_ || !settled) return;
  settle_ = settling_ = false;
  answered_.notify_all();
}

}  // namespace nos::telemetryserver
