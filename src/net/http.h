// HTTP messages as values, and a response body without a known end.
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
  std::string peer{};  // the client's address: "10.0.0.7"; "" if unknown

  // The first value of a header, or "". `name` in lower case.
  std::string_view Header(std::string_view name) const;
};

// A body without a known end: a watch, server-sent events. The connection reads when it can send,
// so data for a slow client never piles up, and destroys the stream when the client disconnects.
// Read and OnReady are called from one thread at a time.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // Appends the available data to `out`, of the order of 64 KiB at most. False: the stream has
  // ended (the appended data is still sent).
  virtual bool Read(std::string& out) = 0;
  // Appends a keep-alive, after nothing was sent for HttpResponse::stream_idle.
  virtual void ReadIdle(std::string& /*out*/) {}
  // Arranges for `wake` to be called once, from any thread or immediately, when Read has new data
  // or the stream has ended. `wake` is cheap and may be called under a lock. The destructor waits
  // for a call in progress; afterwards `wake` is not called.
  virtual void OnReady(std::function<void()> wake) = 0;
};

struct HttpResponse {
  int code = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;  // further ones
  std::string body;
  std::unique_ptr<BodyStream> stream;  // if set: sent chunked instead of `body`
  Duration stream_limit{};             // the stream is ended after this; zero: never
  Duration stream_idle{};              // see BodyStream::ReadIdle; zero: never
};

HttpResponse PlainText(int code, std::string text);

// The status line and headers in wire format, including the empty line at the end.
std::string HeadOf(const HttpResponse& response, bool keep_alive);

// A time as the header Date has it (RFC 9110, section 5.6.7): "Fri, 02 Jan 2026 03:04:05 GMT".
std::string HttpDate(Time t);

// "Not Found" for 404; "" for unknown codes.
std::string_view HttpReason(int code);

}  // namespace nos::net
