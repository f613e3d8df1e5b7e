// Keeps pages of other sites from changing anything in the name of a signed-in user (cross-site
// request forgery). Source: OWASP "Cross-Site Request Forgery Prevention", custom request headers;
// W3C "Fetch Metadata Request Headers".
#pragma once

#include "base/status.h"
#include "net/http.h"

namespace nos::net {

// Checks a request that changes something. It must have the header "X-Nos-Csrf: 1" and the type
// application/json (a page of another site cannot send either without a CORS preflight), and Origin
// and Sec-Fetch-Site must not name another site. Each of these headers occurs at most once. Error:
// kPermission; kInvalid for the type.
Status CheckSameSite(const HttpRequest& request);

}  // namespace nos::net
