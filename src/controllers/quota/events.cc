#include "controllers/quota/events.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "controllers/quota/accounts.h"

namespace nos::controllers {

void QuotaEvents::Add(const cluster::ElasticQuota& quota, kube::EventType type, std::string reason,
                      std::string message) {
  constexpr size_t kMaxQueued = 10'000;
  if (queue_.size() == kMaxQueued) queue_.pop_front();
  queue_.push_back({{QuotaResource(quota.composite).kind, quota.meta.ns, quota.meta.name,
                     quota.meta.uid, "nos.nebuly.com/v1alpha1"},
                    type,
                    std::move(reason),
                    std::move(message)});
}

void QuotaEvents::Publish(kube::Client& client, const Clock& clock) {
  const Time begin = clock.Now();
  if (queue_.empty() || begin < pace_.next()) return;
  const auto end =
      queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), writes_per_call_));
  const std::vector<kube::EventNote> portion(queue_.begin(), end);
  queue_.erase(queue_.begin(), end);
  kube::Client hasty = client.Within(pace_.patience());
  (void)recorder_.RecordAll(hasty, portion, begin);  // best effort
  const Time now = clock.Now();
  pace_.Took(now - begin, now);
}

}  // namespace nos::controllers
