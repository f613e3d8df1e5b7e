#include "codec/cursor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nos {
namespace {

// Everything that a cursor exposes, as text.
std::string Show(Cursor& value) {
  switch (value.kind()) {
    case Cursor::Kind::kNull:
      return "null";
    case Cursor::Kind::kBool:
      return value.Bool() ? "true" : "false";
    case Cursor::Kind::kNumber:
      return "#" + std::string(value.Text());
    case Cursor::Kind::kString:
      return "'" + std::string(value.Text()) + "'";
    case Cursor::Kind::kArray: {
      std::string all = "[";
      value.Elements([&](Cursor& element) { all += Show(element) + ";"; });
      return all + "]";
    }
    case Cursor::Kind::kObject:
      break;
  }
  std::string all = "{";
  value.Members([&](std::string_view key, Cursor& member) {
    all += std::string(key) + ":";
    all += Show(member) + ";";
  });
  return all + "}";
}

std::string ShowText(std::string_view text) {
  std::string all;
  const Status read = ReadJson(text, [&](Cursor& root) { all = Show(root); });
  return read.ok() ? all : "error";
}

std::string ShowTree(std::string_view text) {
  const auto tree = ParseJson(text);
  if (!tree.ok()) return "error";
  std::string all;
  EXPECT_TRUE(ReadJson(*tree, [&](Cursor& root) { all = Show(root); }).ok());
  return all;
}

TEST(CursorTest, KeepsOriginalSpellingOfNumbers) {
  for (const char* number : {"0", "-0.5", "1e3", "1.25E+03", "59e0000000000000000000000000002"}) {
    EXPECT_EQ(ShowText("{\"a\":" + std::string(number) + "}"), "{a:#" + std::string(number) + ";}");
  }
  for (const char* number : {"012", "1.", "-", "1e", "12Gi", "0x1", "1e+", "1.e3"}) {
    EXPECT_EQ(ShowText("{\"a\":" + std::string(number) + "}"), "error") << number;
  }
}

TEST(CursorTest, TextAndTreeGiveEqualValues) {
  for (const char* text :
       {R"({"a":1,"b":[true,false,null,"x\"\u00e9\n"],"c":{"d":{}},"e":[]})", "[]", "{}",
        R"({"big":12345678901,"negative":-3})", R"([[["deep"]],{"k":"v"}])"}) {
    EXPECT_EQ(ShowText(text), ShowTree(text)) << text;
  }
  EXPECT_EQ(ShowText(R"({"a\n":"b"})"), "{a\n:'b';}");
}

TEST(CursorTest, RefusesInvalidJson) {
  for (const char* text : {"", "{", "[1,", R"({"a":})", R"({"a":tru})", R"({"a":"\ud800"})",
                           "{} {}", "{}x", "[1 2]", "[01]", R"({"a":1,})"}) {
    EXPECT_EQ(ShowText(text), "error") << text;
  }
}

TEST(CursorTest, SkipsValuesThatAreNotRequested) {
  std::string found;
  const Status read =
      ReadJson(R"({"skip":{"deep":[1,2,{"x":"}"}]},"take":"this","more":[[]]})", [&](Cursor& root) {
        root.Members([&](std::string_view key, Cursor& value) {
          if (key == "take") found = value.Text();
        });
      });
  EXPECT_TRUE(read.ok()) << read.ToString();
  EXPECT_EQ(found, "this");
}

TEST(CursorTest, RawItemCanBeReadByNestedCursor) {
  std::vector<std::string> raw, names;
  const Status read = ReadJson(
      R"({"items":[ {"name":"a","x":[1, 2]} ,{"name":"b"}],"kind":"List"})", [&](Cursor& root) {
        root.Members([&](std::string_view key, Cursor& items) {
          if (key != "items") return;
          items.Elements([&](Cursor& item) {
            raw.emplace_back(item.Raw());
            EXPECT_TRUE(ReadJson(raw.back(), [&](Cursor& inner) {
                          inner.Members([&](std::string_view name, Cursor& value) {
                            if (name == "name") names.emplace_back(value.Text());
                          });
                        }).ok());
          });
        });
      });
  EXPECT_TRUE(read.ok()) << read.ToString();
  EXPECT_EQ(raw, (std::vector<std::string>{R"({"name":"a","x":[1, 2]})", R"({"name":"b"})"}));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

TEST(CursorTest, SkippedNestingDepthIsUnlimited) {
  const std::string deep = "{\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const Status read = ReadJson(deep, [](Cursor& root) { root.Members([](auto, Cursor&) {}); });
  EXPECT_TRUE(read.ok()) << read.ToString();
}

}  // namespace
}  // namespace nos
