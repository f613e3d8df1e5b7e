// Parses the bytes of a connection into requests, one at a time, within limits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/http.h"

namespace nos::net {

class RequestParser {
 public:
  enum class State { kNeedMore, kDone, kFailed };

  RequestParser(uint32_t max_header_bytes, uint64_t max_body_bytes);
  ~RequestParser();

  // Removes the bytes of this request from the front of `input`; the rest belongs to the next
  // request.
  State Feed(std::string& input);

  bool header_done() const;  // request() has its header
  HttpRequest& request();
  // Valid after kDone.
  bool keep_alive() const;
  bool http11() const;
  // Valid after kFailed: the HTTP status for the client, and the reason as text.
  int failure_code() const { return failure_code_; }
  const std::string& failure() const { return failure_; }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  int failure_code_ = 0;
  std::string failure_;
};

}  // namespace nos::net
