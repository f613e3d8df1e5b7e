#include "controllers/quota/patch_queue.h"

#include "base/log.h"
#include "controllers/metrics.h"

namespace nos::controllers {

void PatchQueue::Drop(const std::string& key) {
  queue_.Forget(key);
  queue_.Done(key);
}

bool PatchQueue::Settle(const std::string& key, const Status& written, Time now) {
  const bool again = !written.ok() && !IsGone(written);
  again ? queue_.Retry(key, now) : queue_.Forget(key);
  queue_.Done(key);
  if (metrics_ != nullptr && (again || written.ok())) {
    metrics_->Count(kQuotaWrites, {{"what", what_}, {"result", again ? "error" : "ok"}});
  }
  if (again) {
    Log(LogLevel::kWarn, "failed to patch quota status, Pod label or ConfigMap",
        {{"object", key}, {"error", written.ToString()}});
  }
  return written.ok();
}

}  // namespace nos::controllers
