// HTTP requests to an identity provider, given as URLs.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace nos::identity {

struct WebCall {
  std::string url;
  std::string form{};  // body of a POST, application/x-www-form-urlencoded; "": a GET
};
// Returns the body of a 200. Errors: kInvalid (400 and similar, with the beginning of the answer),
// kUnavailable and kDeadline.
using WebAsker = std::function<Result<std::string>(const WebCall&)>;

// Uses https; http is allowed only to this machine. `ca_file`: the only CA certificates that are
// trusted; "": the system's. Redirects are not followed; answers are limited to 1 MiB and ten
// seconds.
WebAsker AskOverHttp(std::string ca_file);

// Error: kInvalid: neither https nor on this machine, or not safe in a header.
Status CheckWebAddress(const std::string& url);

}  // namespace nos::identity
