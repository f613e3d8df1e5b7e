#include "codec/server_events.h"

#include <gtest/gtest.h>

#include <vector>

namespace nos {
namespace {

// Feeds the text in pieces of that many bytes. Returns "name/id/data" for each event.
std::vector<std::string> Read(std::string_view text, size_t piece) {
  std::vector<std::string> events;
  ServerEventReader reader(1000);
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    const Status taken = reader.Take(text.substr(0, piece), [&](const ServerEvent& event) {
      events.push_back(event.name + "/" + event.id + "/" + event.data);
    });
    EXPECT_TRUE(taken.ok()) << taken.ToString();
  }
  return events;
}

TEST(ServerEvents, ParsesEventsSplitAnywhere) {
  constexpr std::string_view kText =
      "\xEF\xBB\xBF: a comment\n\nevent: gpus\nid: e.1\ndata: {\"a\":1}\n\r\n"
      "data:two\r\ndata: lines\r\n\r\nevent:empty\n\nretry: 5\rdata\rdata\r\rdata: never ended";
  const std::vector<std::string> wanted = {"gpus/e.1/{\"a\":1}", "message/e.1/two\nlines",
                                           "message/e.1/\n"};
  for (const size_t piece : {1U, 2U, 3U, 7U, 1000U}) EXPECT_EQ(Read(kText, piece), wanted) << piece;
}

TEST(ServerEvents, RefusesTooLargeEvents) {
  ServerEventReader line(10), event(10);
  const auto none = [](const ServerEvent&) { FAIL(); };
  EXPECT_EQ(line.Take("data: 12345", none).code(), Code::kExhausted);
  ASSERT_TRUE(event.Take("data: 123\n", none).ok());
  EXPECT_EQ(event.Take("data: 123\n", none).code(), Code::kExhausted);
}

}  // namespace
}  // namespace nos
