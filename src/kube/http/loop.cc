#include "kube/http/loop.h"

#include <algorithm>
#include <cmath>

namespace nos::kube {
namespace {

constexpr int kMaxPoll = 60;  // seconds; a wake-up ends it

CURLM* NewMulti(int max_connections) {
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)global;
  CURLM* multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(max_connections));
  return multi;
}

}  // namespace

HttpLoop::HttpLoop(double per_second, int burst, int max_connections)
    : per_second_(per_second),
      burst_(burst),
      multi_(NewMulti(max_connections)),
      tokens_(burst),
      thread_([this] { Run(); }) {}

HttpLoop::~HttpLoop() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  curl_multi_wakeup(multi_);
  thread_.join();
  curl_multi_cleanup(multi_);
}

void HttpLoop::Submit(std::shared_ptr<HttpTransfer> transfer) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(transfer));
  }
  curl_multi_wakeup(multi_);
}

void HttpLoop::Cancel(const std::shared_ptr<HttpTransfer>& transfer) {
  std::unique_lock lock(mutex_);
  cancelled_.insert(transfer.get());
  curl_multi_wakeup(multi_);
  dropped_.wait(lock, [&] { return !cancelled_.contains(transfer.get()); });
}

void HttpLoop::Run() {
  for (;;) {
    DropCancelled();
    {
      const std::scoped_lock lock(mutex_);
      if (stop_) break;
    }
    Begin();
    int running = 0;
    curl_multi_perform(multi_, &running);
    Collect();
    curl_multi_poll(multi_, nullptr, 0, MillisecondsToNext(), nullptr);
  }
  for (const auto& [due, transfer] : later_) transfer->Complete(CURLE_ABORTED_BY_CALLBACK);
  while (!active_.empty()) End(*active_.begin()->first, CURLE_ABORTED_BY_CALLBACK);
}

// Starts due repetitions first, then waiting transfers, as far as the rate allows (a token bucket
// that refills with time).
void HttpLoop::Begin() {
  const Steady::time_point now = Steady::now();
  tokens_ = std::min(burst_,
                     tokens_ + std::chrono::duration<double>(now - filled_).count() * per_second_);
  filled_ = now;
  const std::scoped_lock lock(mutex_);
  const auto end = later_.upper_bound(now);
  for (auto due = later_.begin(); due != end; ++due) waiting_.push_front(std::move(due->second));
  later_.erase(later_.begin(), end);
  for (; !waiting_.empty() && tokens_ >= 1; tokens_ -= 1) {
    std::shared_ptr<HttpTransfer> transfer = std::move(waiting_.front());
    waiting_.pop_front();
    transfer->Prepare();
    curl_multi_add_handle(multi_, transfer->handle());
    active_.emplace(transfer.get(), transfer);
  }
}

void HttpLoop::DropCancelled() {
  const std::scoped_lock lock(mutex_);
  if (cancelled_.empty()) return;
  std::erase_if(waiting_, [&](const auto& each) { return cancelled_.contains(each.get()); });
  std::erase_if(later_, [&](const auto& each) { return cancelled_.contains(each.second.get()); });
  for (HttpTransfer* transfer : cancelled_) {
    if (active_.erase(transfer) > 0) curl_multi_remove_handle(multi_, transfer->handle());
  }
  cancelled_.clear();
  dropped_.notify_all();
}

void HttpLoop::Collect() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode result = message->data.result;
    char* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    End(*reinterpret_cast<HttpTransfer*>(transfer), result);
  }
}

void HttpLoop::End(HttpTransfer& transfer, CURLcode result) {
  curl_multi_remove_handle(multi_, transfer.handle());
  if (transfer.WantsNewConnection(result)) {
    curl_multi_add_handle(multi_, transfer.handle());
    return;
  }
  const auto node = active_.extract(&transfer);
  if (const auto due = transfer.RepeatAt(result)) {
    later_.emplace(*due, node.mapped());
    return;
  }
  transfer.Complete(result);
}

int HttpLoop::MillisecondsToNext() {
  double seconds = kMaxPoll;
  if (!later_.empty()) seconds = ToSeconds(later_.begin()->first - Steady::now());
  const std::scoped_lock lock(mutex_);
  if (!waiting_.empty()) seconds = std::min(seconds, (1 - tokens_) / per_second_);
  return static_cast<int>(std::ceil(std::clamp<double>(seconds, 0.001, kMaxPoll) * 1000));
}

}  // namespace nos::kube
