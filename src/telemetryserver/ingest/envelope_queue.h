// Envelopes that wait to be written: from the threads that receive them to the one that writes.
//
//   Receipt receipt = queue.Put(std::move(envelope), gzip_body);  // returns after Answer
//
//   EnvelopeQueue::Batch batch;                                   // the writer thread
//   while (queue.Take(/*busy=*/false, batch)) {
//     queue.Answer(batch, Write(batch));
//     queue.EndRound(/*settled=*/true);
//   }
//
// Bounded in envelopes and bytes. Thread-safe; one thread takes.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "telemetry/envelope.h"

namespace nos::telemetryserver {

// Answer to an envelope.
struct Receipt {
  // kInvalid: permanently rejected; kExhausted, kUnavailable: retry later.
  Status status;
  int64_t sequence = 0;                       // highest sequence of this source and boot on disk
  std::vector<telemetry::Refused> refused{};  // valid records that were not stored, the first ones
  size_t refused_records = 0;                 // number of all those
};

class EnvelopeQueue {
 public:
  struct Waiting {
    telemetry::Envelope envelope;
    std::string body;  // the envelope, gzip
    Receipt receipt{};
    bool done = false;
    int64_t cluster = 0, journal = 0;  // journal 0: it was stored before
  };
  using Batch = std::vector<std::shared_ptr<Waiting>>;

  // `max_wait`: for the answer to an envelope.
  explicit EnvelopeQueue(Duration max_wait) : max_wait_(max_wait) {}

  // --- From any thread ---
  // Returns when the envelope is answered, or at once if the queue is full or stopped.
  // kUnavailable: it was not answered in time, and may or may not be written.
  Receipt Put(telemetry::Envelope envelope, std::string body);
  // Waits for a round that ends settled and starts after this call.
  void Settle();
  // Put fails from here on.
  void Stop();

  // --- From the thread that takes ---
  // Begins a round. Waits for envelopes for a while, unless `busy`. False: stopped and empty.
  bool Take(bool busy, Batch& batch);
  void Answer(const Batch& batch, const Status& status);
  bool empty() const;
  // True if a call of Settle waits.
  bool settling() const;
  // `settled`: calls of Settle that were waiting at the start of the round return.
  void EndRound(bool settled);

 private:
  const Duration max_wait_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, answered_;
  std::deque<std::shared_ptr<Waiting>> queue_;
  size_t bytes_ = 0;
  bool stop_ = false, settle_ = false;
  bool settling_ = false;  // value of settle_ at the start of the round
};

}  // namespace nos::telemetryserver
