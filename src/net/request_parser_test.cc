#include "net/request_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace nos::net {
namespace {

// Feeds each byte alone, as a slow or hostile client may send them.
TEST(RequestParserTest, ParsesChunksSplitAnywhere) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::pair<std::string, std::string> cases[] = {
      {"0\r\n\r\n", ""}, {"3\r\nabc\r\n0\r\n\r\n", "abc"}, {"1;e\r\na\r\n0\r\nT: x\r\n\r\n", "a"}};
  for (const auto& [body, content] : cases) {
    RequestParser parser(1000, 1000);
    std::string input;
    RequestParser::State state = RequestParser::State::kNeedMore;
    for (const char byte : head + body) {
      ASSERT_EQ(state, RequestParser::State::kNeedMore) << body;
      input += byte;
      state = parser.Feed(input);
    }
    EXPECT_EQ(state, RequestParser::State::kDone) << body;
    EXPECT_EQ(parser.request().body, content);
  }
}

}  // namespace
}  // namespace nos::net
