#include "net/url.h"

#include <gtest/gtest.h>

#include "net/loopback.h"

namespace nos::net {
namespace {

TEST(UrlTest, DecodesPathAndQuery) {
  const auto target = ParseTarget("/api/v1/a%20b?labelSelector=a%3Db%2Cc+d&watch&x=");
  ASSERT_TRUE(target.ok()) << target.status().ToString();
  EXPECT_EQ(target->path, "/api/v1/a b");
  ASSERT_EQ(target->query.size(), 3u);
  EXPECT_EQ(target->query[0].second, "a=b,c d");
  EXPECT_EQ(target->query[1].first, "watch");
}

TEST(UrlTest, RefusesAmbiguousPaths) {
  for (const char* bad : {"", "x", "http://h/a", "/a%2Fb", "/%", "/%2", "/%zz", "/a/../b",
                          "/%2e%2e", "/a%00b", "/a?x=%"}) {
    EXPECT_FALSE(ParseTarget(bad).ok()) << bad;
  }
}

TEST(UrlTest, EncodingRoundTrips) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(PercentDecode(PercentEncode(all)).value(), all);
}

HttpRequest With(HttpHeaders headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  return request;
}

TEST(LoopbackTest, RecognizesLoopbackNames) {
  for (const char* good :
       {"localhost", "LOCALHOST:80", "127.0.0.1:8001", "127.9.9.9", "[::1]:1", "[::1]"}) {
    EXPECT_TRUE(IsLoopbackAuthority(good)) << good;
  }
  for (const char* bad : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                          "10.0.0.1", "127.0.0.1:", "127.0.0.1:x", "[::2]:1", "127.0.1"}) {
    EXPECT_FALSE(IsLoopbackAuthority(bad)) << bad;
  }
}

TEST(LoopbackTest, RefusesRebindingAndForeignPages) {
  EXPECT_TRUE(CheckLocal(With({{"host", "127.0.0.1:1"}})).ok());
  EXPECT_TRUE(CheckLocal(With({{"host", "127.0.0.1:1"}, {"origin", "http://127.0.0.1:1"}})).ok());
  EXPECT_FALSE(CheckLocal(With({})).ok());
  EXPECT_FALSE(CheckLocal(With({{"host", "evil.example"}})).ok());
  EXPECT_FALSE(CheckLocal(With({{"host", "127.0.0.1"}, {"host", "evil.example"}})).ok());
  for (const char* origin : {"null", "http://evil.example", "http://127.0.0.1:2"}) {
    EXPECT_FALSE(CheckLocal(With({{"host", "127.0.0.1:1"}, {"origin", origin}})).ok()) << origin;
  }
  EXPECT_FALSE(CheckLocal(With({{"host", "127.0.0.1:1"}, {"sec-fetch-site", "cross-site"}})).ok());
  const std::pair<std::string, std::string> own{"origin", "http://127.0.0.1:1"};
  EXPECT_FALSE(
      CheckLocal(With({{"host", "127.0.0.1:1"}, own, {"origin", "http://evil.example"}})).ok());
  EXPECT_FALSE(CheckLocal(With({{"host", "127.0.0.1:1"},
                                {"sec-fetch-site", "none"},
                                {"sec-fetch-site", "cross-site"}}))
                   .ok());
}

}  // namespace
}  // namespace nos::net
