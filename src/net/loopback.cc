#include "net/loopback.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace nos::net {
namespace {

bool IsPort(std::string_view text) {
  const auto port = ParseInt(text);
  return port.has_value() && *port > 0 && *port < 65536;
}

bool IsLoopbackV4(std::string_view host) {
  const auto parts = Split(host, '.');
  return parts.size() == 4 && parts[0] == "127" &&
         std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           const auto n = ParseInt(part);
           return n.has_value() && *n >= 0 && *n < 256 && part.size() <= 3;
         });
}

}  // namespace

bool IsLoopbackAuthority(std::string_view authority) {
  constexpr std::string_view kV6 = "[::1]";
  std::string_view host = authority;
  std::string_view port;
  const size_t colon = authority.rfind(':');
  const size_t bracket = authority.rfind(']');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    if (!IsPort(port)) return false;
  }
  return host == kV6 || ToLower(host) == "localhost" || IsLoopbackV4(host);
}

Status CheckLocal(const HttpRequest& request) {
  const auto count = [&](std::string_view name) {
    return std::count_if(request.headers.begin(), request.headers.end(),
                         [&](const auto& header) { return header.first == name; });
  };
  const std::string_view host = request.Header("host");
  if (count("host") != 1 || !IsLoopbackAuthority(host)) {
    return {Code::kPermission,
            fmt::format("the Host header \"{}\" is not this machine's; use 127.0.0.1", host)};
  }
  const std::string_view origin = request.Header("origin");
  const bool same_origin =
      origin.empty() || (origin.starts_with("http://") && origin.substr(7) == host);
  const std::string_view site = request.Header("sec-fetch-site");
  // If a header is repeated, other readers may use another copy than this check does.
  const bool certain = count("origin") <= 1 && count("sec-fetch-site") <= 1;
  if (!certain || !same_origin || site == "cross-site" || site == "same-site") {
    return {Code::kPermission, "requests from web pages of other sites are refused"};
  }
  return Status::Ok();
}

}  // namespace nos::net
