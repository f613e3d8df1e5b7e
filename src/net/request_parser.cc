// Boost 1.81 asserts in parse_chunk_header that an incomplete last chunk has five bytes. "0", CR,
// LF and one more byte are four, so a client that sends them in two pieces would end this process.
// Without the assertion the parser waits for the missing bytes, which is correct.
#define BOOST_DISABLE_ASSERTS

#include "net/request_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "base/text.h"

namespace nos::net {

namespace http = boost::beast::http;

class RequestParser::Impl final : public http::basic_parser<true> {
 public:
  HttpRequest request;
  bool http11 = false;

 private:
  using Error = boost::beast::error_code;
  using Text = boost::beast::string_view;

  void on_request_impl(http::verb /*known*/, Text method, Text target, int version,
                       Error& error) override {
    request.method = method;
    request.target = target;
    http11 = version >= 11;
    error = {};
  }
  void on_response_impl(int /*code*/, Text /*reason*/, int /*version*/, Error& error) override {
    error = {};
  }
  void on_field_impl(http::field /*known*/, Text name, Text value, Error& error) override {
    request.headers.emplace_back(ToLower({name.data(), name.size()}), value);
    error = {};
  }
  void on_header_impl(Error& error) override {
    error = {};
    if (!LengthIsCertain()) error = http::error::bad_transfer_encoding;
  }
  void on_body_init_impl(const boost::optional<uint64_t>& /*length*/, Error& error) override {
    error = {};
  }
  size_t on_body_impl(Text body, Error& error) override {
    request.body.append(body.data(), body.size());
    error = {};
    return body.size();
  }
  void on_chunk_header_impl(uint64_t /*size*/, Text /*extensions*/, Error& error) override {
    error = {};
  }
  size_t on_chunk_body_impl(uint64_t /*remain*/, Text body, Error& error) override {
    return on_body_impl(body, error);
  }
  void on_finish_impl(Error& error) override { error = {}; }

  // RFC 9112, 6.1 and 6.3: the end of a request is ambiguous if its transfer coding does not end in
  // "chunked", is sent with HTTP/1.0, or stands beside a Content-Length. The following bytes could
  // then pass for another request. Only "chunked" is supported here.
  bool LengthIsCertain() const {
    size_t codings = 0, lengths = 0;
    for (const auto& [name, value] : request.headers) {
      lengths += name == "content-length" ? 1 : 0;
      if (name != "transfer-encoding") continue;
      if (++codings > 1 || ToLower(Trim(value)) != "chunked") return false;
    }
    return codings == 0 || (http11 && lengths == 0);
  }
};

RequestParser::RequestParser(uint32_t max_header_bytes, uint64_t max_body_bytes)
    : impl_(std::make_unique<Impl>()) {
  impl_->header_limit(max_header_bytes);
  impl_->body_limit(max_body_bytes);
  impl_->eager(true);
}

RequestParser::~RequestParser() = default;

RequestParser::State RequestParser::Feed(std::string& input) {
  boost::beast::error_code error;
  const size_t used = impl_->put(boost::asio::buffer(input), error);
  input.erase(0, used);
  if (impl_->is_done() && !error) return State::kDone;
  if (!error || error == http::error::need_more) return State::kNeedMore;
  failure_code_ = 400;
  failure_ = "malformed HTTP request: " + error.message();
  if (error == http::error::body_limit) {
    failure_code_ = 413;
    failure_ = "the body is too large";
  } else if (error == http::error::header_limit) {
    failure_code_ = 431;
    failure_ = "the header is too large";
  }
  return State::kFailed;
}

bool RequestParser::header_done() const { return impl_->is_header_done(); }
HttpRequest& RequestParser::request() { return impl_->request; }
bool RequestParser::keep_alive() const { return impl_->keep_alive(); }
bool RequestParser::http11() const { return impl_->http11; }

}  // namespace nos::net
