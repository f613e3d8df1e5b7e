#include <gtest/gtest.h>

#include "codec/yaml.h"

namespace nos {
namespace {

TEST(WriteYamlTest, WritesBlockStyleAsKubectlDoes) {
  const Json value = ParseJson(R"([{"name":"a","labels":{"app":"web","empty":{}},"list":[1,[2,3],
      {"x":null,"z":true}],"none":[]},"text"])")
                         .value();
  EXPECT_EQ(WriteYaml(value), R"(- name: a
  labels:
    app: web
    empty: {}
  list:
  - 1
  - - 2
    - 3
  - x: null
    z: true
  none: []
- text
)");
}

TEST(WriteYamlTest, EveryTextIsReadBackAsTheSameText) {
  for (const char* text :
       {"",       "true",   "No",  "null", "~",          "1",        "1e3",
        "0x10",   "a: b",   "- a", "#x",   "a #b",       "{",        "[",
        "&a",     "*a",     "!x",  "'",    "\"",         "\\",       "multi\nline",
        " blank", "blank ", "@x",  "y",    "2026-01-02", "1g.5gb@0", "nvidia.com/mig-1g.5gb",
        "\x01",   "ä"}) {
    const Json value{{"key", text}, {std::string("k") + text, JsonArray{text}}};
    const auto read = ParseYaml(WriteYaml(value));
    ASSERT_TRUE(read.ok()) << text << ": " << read.status().message();
    ASSERT_EQ(read->size(), 1U) << text;
    EXPECT_EQ(read->front(), value) << text;
  }
}

TEST(WriteYamlTest, WritesScalars) {
  EXPECT_EQ(WriteYaml(Json(5)), "5\n");
  EXPECT_EQ(WriteYaml(Json("5")), "\"5\"\n");
  EXPECT_EQ(WriteYaml(Json(JsonArray())), "[]\n");
}

}  // namespace
}  // namespace nos
