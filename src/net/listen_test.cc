#include "net/listen.h"

#include <gtest/gtest.h>

namespace nos::net {
namespace {

TEST(ListenTest, ReadsAddresses) {
  const auto read = [](const std::string& text) {
    const auto options = ParseListenAddress(text);
    return options.ok() ? options->address + " " + std::to_string(options->port) : "";
  };
  EXPECT_EQ(read(":8080"), " 8080");
  EXPECT_EQ(read("10.0.0.1:1"), "10.0.0.1 1");
  EXPECT_EQ(read("localhost:0"), "127.0.0.1 0");
  EXPECT_EQ(read("[::1]:65535"), "::1 65535");
  for (const char* wrong : {"", "8080", "host:", ":-1", ":65536", ":port", "host:1x"}) {
    EXPECT_EQ(ParseListenAddress(wrong).status().code(), Code::kInvalid) << wrong;
  }
}

TEST(ListenTest, EmptyHostListensOnEveryAddress) {
  const auto server = Listen({}, [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  HttpServerOptions everywhere;
  everywhere.address = "";
  const auto other = Listen(everywhere, [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  EXPECT_NE((*other)->port(), (*server)->port());
}

}  // namespace
}  // namespace nos::net
