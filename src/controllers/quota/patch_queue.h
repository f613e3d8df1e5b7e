// A queue of objects to patch, with back-off for each one and a metric of the results.
//
//   PatchQueue due("label", metrics);
//   due.Add("ml/train-0", now);
//   const auto key = due.Take(now);
//   if (due.Settle(*key, client.Patch(...).status(), now)) ...   // written
//
// Owned by one thread.
#pragma once

#include <optional>
#include <string>

#include "base/metrics.h"
#include "base/status.h"
#include "kube/work_queue.h"

namespace nos::controllers {

// The object was deleted or replaced: the next watch event decides.
inline bool IsGone(const Status& written) {
  return written.code() == Code::kNotFound || written.code() == Code::kConflict;
}

class PatchQueue {
 public:
  // `what`: value of the metric's label. `metrics` may be null, and must outlive this.
  PatchQueue(const char* what, Metrics* metrics) : what_(what), metrics_(metrics) {}

  void Add(const std::string& key, Time at) { queue_.Add(key, at); }
  std::optional<std::string> Take(Time now) { return queue_.Take(now); }
  bool Failing(const std::string& key) const { return queue_.Failing(key); }
  // Ends the work on a taken key without a write.
  void Drop(const std::string& key);
  // Ends the work on a taken key; after an error it is due again after a back-off. Returns whether
  // the write succeeded.
  bool Settle(const std::string& key, const Status& written, Time now);
  // Time::max(): the queue is empty.
  Time NextDue() const { return queue_.NextDue().value_or(Time::max()); }

 private:
  const char* const what_;
  Metrics* const metrics_;
  kube::WorkQueue queue_;
};

}  // namespace nos::controllers
