#include "net/same_site.h"

#include <gtest/gtest.h>

#include "net/client_address.h"

namespace nos::net {
namespace {

HttpHeaders Own() {
  return {{"host", "nos.example"}, {"x-nos-csrf", "1"}, {"content-type", "application/json"}};
}

Code Check(HttpHeaders more, HttpHeaders headers = Own()) {
  headers.insert(headers.end(), more.begin(), more.end());
  return CheckSameSite({"POST", "/", headers, ""}).code();
}

TEST(SameSiteTest, AcceptsDashboardAndPrograms) {
  EXPECT_EQ(Check({}), Code::kOk) << "curl";
  EXPECT_EQ(Check({{"origin", "https://nos.example"}, {"sec-fetch-site", "same-origin"}}),
            Code::kOk);
  EXPECT_EQ(Check({{"origin", "https://Nos.Example"}}), Code::kOk) << "an older browser";
  EXPECT_EQ(Check({{"origin", "https://public.example"}, {"sec-fetch-site", "same-origin"}}),
            Code::kOk)
      << "behind a proxy that names this server otherwise";
}

TEST(SameSiteTest, RefusesPagesOfOtherSites) {
  for (const char* site : {"cross-site", "same-site", "nonsense", "SAME-ORIGIN "}) {
    EXPECT_EQ(Check({{"sec-fetch-site", site}}), Code::kPermission) << site;
  }
  for (const char* origin : {"https://evil.example", "null", "https://nos.example.evil.example",
                             "https://nos.example:8443", "nos.example", "://"}) {
    EXPECT_EQ(Check({{"origin", origin}}), Code::kPermission) << origin;
  }
  EXPECT_EQ(Check({}, {{"content-type", "application/json"}}), Code::kPermission);
  EXPECT_EQ(Check({}, {{"x-nos-csrf", "0"}, {"content-type", "application/json"}}),
            Code::kPermission);
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "",
                           "multipart/form-data; x=application/json"}) {
    EXPECT_EQ(Check({}, {{"x-nos-csrf", "1"}, {"content-type", type}}), Code::kInvalid) << type;
  }
  EXPECT_EQ(Check({}, {{"x-nos-csrf", "1"}, {"content-type", "Application/JSON; charset=utf-8"}}),
            Code::kOk);
}

TEST(SameSiteTest, RefusesRepeatedHeaders) {
  EXPECT_EQ(Check({{"sec-fetch-site", "same-origin"}, {"sec-fetch-site", "cross-site"}}),
            Code::kPermission);
  EXPECT_EQ(Check({{"content-type", "text/plain"}}), Code::kPermission);
}

std::string Client(const std::string& peer, const HttpHeaders& headers,
                   const std::string& proxies) {
  HttpRequest request{"GET", "/", headers, ""};
  request.peer = peer;
  const auto trusted = TrustedProxies::Parse(proxies);
  EXPECT_TRUE(trusted.ok()) << trusted.status().ToString();
  return trusted->ClientOf(request);
}

TEST(ClientAddressTest, BelievesOnlyTrustedProxies) {
  const HttpHeaders headers = {{"x-forwarded-for", "1.2.3.4, 203.0.113.9"}};
  EXPECT_EQ(Client("203.0.113.1", headers, ""), "203.0.113.1");
  EXPECT_EQ(Client("203.0.113.1", headers, "10.0.0.0/8"), "203.0.113.1");
  EXPECT_EQ(Client("10.1.2.3", headers, "10.0.0.0/8"), "203.0.113.9")
      << "what comes before it anybody may have written";
  EXPECT_EQ(Client("10.1.2.3", headers, "10.0.0.0/8,203.0.113.9"), "1.2.3.4");
  EXPECT_EQ(Client("10.1.2.3", {}, "10.0.0.0/8"), "10.1.2.3");
  EXPECT_EQ(Client("10.1.2.3", {{"x-forwarded-for", "1.2.3.4"}, {"x-forwarded-for", "5.6.7.8"}},
                   "10.0.0.0/8"),
            "5.6.7.8");
  EXPECT_EQ(Client("10.1.2.3", {{"x-forwarded-for", "1.2.3.4, \" onload=x"}}, "10.0.0.0/8"),
            "10.1.2.3")
      << "what is no address is nobody's";
  EXPECT_EQ(Client("fd00::7", {{"x-forwarded-for", "2001:db8::1"}}, "fd00::/8"), "2001:db8::1");
}

TEST(ClientAddressTest, SaysIfHeaderIsNotRead) {
  HttpRequest request{"GET", "/", {{"x-forwarded-for", "1.2.3.4"}}, ""};
  request.peer = "10.1.2.3";
  EXPECT_TRUE(TrustedProxies::Parse("")->Ignores(request));
  EXPECT_TRUE(TrustedProxies::Parse("10.2.0.0/16")->Ignores(request));
  EXPECT_FALSE(TrustedProxies::Parse("10.1.0.0/16")->Ignores(request));
  request.headers.clear();
  EXPECT_FALSE(TrustedProxies::Parse("")->Ignores(request));
}

TEST(ClientAddressTest, ValidatesProxyNetworks) {
  for (const char* wrong : {"10.0.0.0/33", "x", "10.0.0.0/-1", "10.0.0/8", "fd00::/129", "::1/x"}) {
    EXPECT_EQ(TrustedProxies::Parse(wrong).status().code(), Code::kInvalid) << wrong;
  }
  EXPECT_TRUE(TrustedProxies::Parse(" 10.0.0.0/8 , ::1,").ok());
}

}  // namespace
}  // namespace nos::net
