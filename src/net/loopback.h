// Keeps web pages away from a server on this machine. A page that the user visits can send requests
// to 127.0.0.1 (cross-site request forgery), and with a name that resolves to 127.0.0.1 it can also
// read the answers (DNS rebinding). Neither can forge the Host and Origin headers of the browser.
#pragma once

#include "base/status.h"
#include "net/http.h"

namespace nos::net {

// True for "localhost", "127.0.0.1" to "127.255.255.255" and "[::1]", each with or without a port.
bool IsLoopbackAuthority(std::string_view authority);

// Error: kPermission if Host is missing or not this machine, if Origin is present and differs from
// "http://<Host>", if the browser reports a request from another site, or if one of these headers
// is repeated.
Status CheckLocal(const HttpRequest& request);

}  // namespace nos::net
