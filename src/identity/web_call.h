// A request to an address as people write it, for the few that identity providers are asked.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace nos::identity {

struct WebCall {
  std::string url;
  std::string form{};  // posted, application/x-www-form-urlencoded; "": a GET
};
// The body of a 200. Errors: kInvalid (400 and the like: with the beginning of what was said),
// kUnavailable and kDeadline.
using WebAsker = std::function<Result<std::string>(const WebCall&)>;

// Over https; over http on this machine alone. `ca_file`: authorities beside none of the system's;
// "": the system's. No redirects are followed, answers end at 1 MiB and after ten seconds.
WebAsker AskOverHttp(std::string ca_file);

// Error: kInvalid: neither https nor on this machine, or not to be put into a header.
Status CheckWebAddress(const std::string& url);

}  // namespace nos::identity
