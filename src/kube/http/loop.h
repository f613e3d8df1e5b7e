// The thread that performs HTTP transfers. Internal to this library.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "kube/http/transfer.h"

namespace nos::kube {

class HttpLoop {
 public:
  HttpLoop(double per_second, int burst, int max_connections);
  // Aborts transfers in progress.
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  // Thread-safe. Transfers start in the order of submission, as fast as the rate allows.
  void Submit(std::shared_ptr<HttpTransfer> transfer);
  // Returns when the loop has released the transfer; none of its callbacks is called afterwards.
  void Cancel(const std::shared_ptr<HttpTransfer>& transfer);

 private:
  using Steady = std::chrono::steady_clock;

  void Run();
  void Begin();
  void DropCancelled();
  void Collect();
  void End(HttpTransfer& transfer, CURLcode result);
  int MillisecondsToNext();

  const double per_second_, burst_;
  CURLM* const multi_;
  std::mutex mutex_;
  std::condition_variable dropped_;
  std::deque<std::shared_ptr<HttpTransfer>> waiting_;
  std::set<HttpTransfer*> cancelled_;
  bool stop_ = false;
  // Used by the loop's thread only.
  std::map<HttpTransfer*, std::shared_ptr<HttpTransfer>> active_;
  std::multimap<Steady::time_point, std::shared_ptr<HttpTransfer>> later_;  // repetitions
  double tokens_;
  Steady::time_point filled_ = Steady::now();
  std::thread thread_;
};

}  // namespace nos::kube
