// HTTP messages as values, and a response body that goes on for as long as it likes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace nos::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;   // as sent: "GET"
  std::string target;   // as sent, still percent-encoded: "/a%20b?x=1"
  HttpHeaders headers;  // names in lower case, in the order sent
  std::string body;
  std::string peer{};  // the address that it came from: "10.0.0.7"; "" where there is none

  // The first value of a header, or "". `name` in lower case.
  std::string_view Header(std::string_view name) const;
};

// A body without a known end: a watch, server-sent events. The connection reads when it can send,
// so that a slow client never makes anything pile up, and destroys the stream when the client
// leaves. Read and OnReady are called from one thread at a time.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // Appends what there is now to `out`, of the order of 64 KiB at most. False: the stream has ended
  // (what was appended is still sent).
  virtual bool Read(std::string& out) = 0;
  // Appends what a client is told that has heard nothing for HttpResponse::stream_idle.
  virtual void ReadIdle(std::string& /*out*/) {}
  // Arranges for `wake` to be called once, from any thread or at once, when Read has something new
  // or the stream has ended. `wake` is cheap and may be called under a lock. The destructor waits
  // for a call under way; after it none is made.
  virtual void OnReady(std::function<void()> wake) = 0;
};

struct HttpResponse {
  int code = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;  // further ones
  std::string body;
  std::unique_ptr<BodyStream> stream;  // when set: sent chunked instead of `body`
  Duration stream_limit{};             // the stream is ended after this; zero: never
  Duration stream_idle{};              // see BodyStream::ReadIdle; zero: never
};

HttpResponse PlainText(int code, std::string text);

// The status line and headers as they go over the wire, with the empty line at their end.
std::string HeadOf(const HttpResponse& response, bool keep_alive);

// "Not Found" for 404; "" for codes without a name here.
std::string_view HttpReason(int code);

}  // namespace nos::net
