// Keeps pages of other sites from having things done in the name of whoever looks at them
// (cross-site request forgery). Source: OWASP "Cross-Site Request Forgery Prevention", custom
// request headers; W3C "Fetch Metadata Request Headers".
#pragma once

#include "base/status.h"
#include "net/http.h"

namespace nos::net {

// A request that changes something: with the header "X-Nos-Csrf: 1" and the type application/json,
// neither of which another site's page can send unasked, and from no page of another site as far as
// the browser tells (Origin, Sec-Fetch-Site). Each of these at most once. Error: kPermission;
// kInvalid for the type.
Status CheckSameSite(const HttpRequest& request);

}  // namespace nos::net
