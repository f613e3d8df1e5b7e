#include "net/same_site.h"

#include <algorithm>

#include "base/text.h"

namespace nos::net {

Status CheckSameSite(const HttpRequest& request) {
  constexpr std::string_view kOnce[] = {"x-nos-csrf", "content-type", "origin", "sec-fetch-site"};
  for (const std::string_view name : kOnce) {
    const auto count = std::ranges::count_if(
        request.headers, [&](const auto& header) { return header.first == name; });
    if (count > 1) return {Code::kPermission, "the header " + std::string(name) + " is repeated"};
  }
  const auto elsewhere = [] {
    return Status(Code::kPermission, "requests from web pages of other sites are refused");
  };
  const std::string_view site = request.Header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none") return elsewhere();
  // Sec-Fetch-Site takes precedence over Origin: a proxy may have replaced Host, with which Origin
  // is compared.
  const std::string_view origin = request.Header("origin");
  const size_t scheme = origin.find("://");
  const bool own = scheme != std::string_view::npos &&
                   ToLower(origin.substr(scheme + 3)) == ToLower(request.Header("host"));
  if (!origin.empty() && !own && site != "same-origin") return elsewhere();
  if (request.Header("x-nos-csrf") != "1") {
    return {Code::kPermission,
            "the header \"X-Nos-Csrf: 1\" is missing, which keeps pages of other sites away"};
  }
  const std::string_view type = request.Header("content-type");
  if (ToLower(Trim(type.substr(0, type.find(';')))) != "application/json") {
    return Invalid("the content type must be application/json");
  }
  return Status::Ok();
}

}  // namespace nos::net
