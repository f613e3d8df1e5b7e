// One HTTP exchange: a curl handle with all that belongs to it. Internal to this room.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bell.h"
#include "base/status.h"
#include "kube/connection.h"
#include "kube/transport.h"

namespace nos::kube {

// Made and waited for by a caller, performed by the loop's thread; what has come may be read when
// it is done.
class HttpTransfer {
 public:
  // Of the loop's thread. False ends the transfer.
  using Receive = std::function<bool(std::string_view data)>;

  HttpTransfer(const ConnectionConfig& config, std::shared_ptr<const Identity> identity,
               const ApiRequest& request);
  ~HttpTransfer();
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  // Instead of being collected, a successful answer's data goes there; `ended` is called when no
  // more will come.
  void StreamTo(Receive receive, std::function<void()> ended);
  // A busy server's wish for a later time is met if there is time; it fails when there is none
  // left.
  void SetDeadline(std::chrono::steady_clock::time_point deadline);
  void SetSilence(Duration most);
  // Of the answer that is collected; a longer one fails.
  void SetMostBytes(size_t most) { most_bytes_ = most; }
  // Asked by the loop's thread right before anything is sent, on every connection that is tried. It
  // must outlive this.
  void SendOnlyIf(const std::function<bool()>* may_send);

  CURL* handle() const { return curl_; }
  // By the loop, each time before it is performed.
  void Prepare();
  // By the loop, before Complete. True, at most once: it met nothing but connections that the
  // server had closed, and is to be performed again on a new one.
  bool WantsNewConnection(CURLcode result);
  // By the loop, before Complete. When it is to be performed again, since the server is too busy.
  std::optional<std::chrono::steady_clock::time_point> RepeatAt(CURLcode result);
  // By the loop, once.
  void Complete(CURLcode result);
  // Whether it was complete in time.
  bool WaitUntil(std::chrono::steady_clock::time_point deadline);

  // Once complete. `error` is OK when an answer came, whatever it says.
  const Status& error() const { return error_; }
  int code() const { return code_; }
  Duration retry_after() const { return retry_after_; }
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
  size_t most_bytes_ = 0;
  Duration retry_after_{};
  bool on_new_connection_ = false;
  int repetitions_ = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  Bell done_;
};

}  // namespace nos::kube
