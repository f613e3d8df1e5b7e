// One HTTP exchange: a curl handle and everything it uses. Internal to this library.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/wake_signal.h"
#include "kube/connection.h"
#include "kube/transport.h"

namespace nos::kube {

// A caller creates it and waits for it; the loop's thread performs it. Read the results after it is
// done.
class HttpTransfer {
 public:
  // Called on the loop's thread. False aborts the transfer.
  using Receive = std::function<bool(std::string_view data)>;

  HttpTransfer(const ConnectionConfig& config, std::shared_ptr<const Identity> identity,
               const ApiRequest& request);
  ~HttpTransfer();
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  // Passes the data of a successful answer to `receive` instead of collecting it; `ended` is called
  // when no more data can follow.
  void StreamTo(Receive receive, std::function<void()> ended);
  // Sets the time limit of the transfer. A server's Retry-After is honoured if it ends before the
  // deadline; otherwise the transfer fails.
  void SetDeadline(std::chrono::steady_clock::time_point deadline);
  void SetSilence(Duration most);
  // Limit for a collected answer; a longer one fails.
  void SetMaxBytes(size_t max) { max_bytes_ = max; }
  // The loop's thread calls `may_send` immediately before it sends anything, on every connection
  // that is tried. It must outlive this.
  void SendOnlyIf(const std::function<bool()>* may_send);

  CURL* handle() const { return curl_; }
  // Called by the loop, each time before it performs the transfer.
  void Prepare();
  // Called by the loop before Complete. True, at most once: the transfer met only connections that
  // the server had closed, so the loop repeats it on a new one.
  bool WantsNewConnection(CURLcode result);
  // Called by the loop before Complete. Returns the time of a repetition if the server is too busy.
  std::optional<std::chrono::steady_clock::time_point> RepeatAt(CURLcode result);
  // Called by the loop, once.
  void Complete(CURLcode result);
  // Returns whether it completed in time.
  bool WaitUntil(std::chrono::steady_clock::time_point deadline);

  // Valid after completion. `error` is OK if an answer arrived, whatever its code.
  const Status& error() const { return error_; }
  int code() const { return code_; }
  Duration retry_after() const { return retry_after_; }
  // The header Date; nullopt without a readable one.
  std::optional<Time> Date() const;
  std::string TakeBody() { return std::move(body_); }

 private:
  static int OnSend(void* self, char*, char*, int, int);
  static size_t OnData(char* data, size_t size, size_t count, void* self);
  std::string ServerUrl(const ConnectionConfig& config);
  void SetUrl(const ConnectionConfig& config, const ApiRequest& request);
  void SetIdentity();
  void AddHeader(const std::string& line);

  const std::shared_ptr<const Identity> identity_;  // curl reads the certificates from it
  CURL* const curl_;
  curl_slist *headers_ = nullptr, *connect_to_ = nullptr;
  std::string url_, sent_, body_;
  char message_[CURL_ERROR_SIZE] = {};
  const std::function<bool()>* may_send_ = nullptr;
  bool forbidden_ = false;
  Receive receive_;
  std::function<void()> ended_;
  Status error_;
  int code_ = 0;
  size_t max_bytes_ = 0;
  Duration retry_after_{};
  bool on_new_connection_ = false;
  int repetitions_ = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  WakeSignal done_;
};

}  // namespace nos::kube
