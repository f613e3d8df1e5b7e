#include <gtest/gtest.h>

#include <limits>

#include "codec/duplicate_keys.h"
#include "codec/json.h"
#include "codec/millionths.h"
#include "codec/yaml.h"

namespace nos {
namespace {

TEST(JsonTest, RoundTripsAndFindsByPath) {
  const auto value = ParseJson(R"({"a":{"b":"x"},"n":[1,2.5,null]})");
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(FindString(*value, "a", "b"), "x");
  EXPECT_EQ(Find(*value, "a", "c"), nullptr);
  EXPECT_EQ(WriteJson(*value), R"({"a":{"b":"x"},"n":[1,2.5E0,null]})");
}

TEST(JsonTest, PrettyOutputEscapesTerminalControls) {
  const Json value{{"a\u202eb", "\u061c\u009b31m\x7f\x1b日本é\u2069…😀"}};
  const std::string text = WriteJsonPretty(value);
  EXPECT_NE(text.find(R"("a\u202eb": "\u061c\u009b31m\u007f\u001b日本é\u2069…😀")"),
            std::string::npos)
      << text;
  EXPECT_EQ(ParseJson(text).value_or(Json()), value);
}

TEST(JsonTest, RefusesInvalidTextWithOffset) {
  EXPECT_FALSE(ParseJson("").ok());
  EXPECT_FALSE(ParseJson("{} x").ok());
  EXPECT_FALSE(ParseJson("{\"a\":").ok());
  EXPECT_FALSE(ParseJson(std::string(200, '[')).ok());
  EXPECT_FALSE(ParseJson("[{\"a\":1e400}]").ok());
  EXPECT_TRUE(ParseJson("7").ok());
}

TEST(YamlTest, TypesPlainScalarsAndKeepsQuotedOnes) {
  const auto documents = ParseYaml("a: 1\nb: \"1\"\nc: true\nd: 500m\ne:\nf: 1.5\n---\n- x\n");
  ASSERT_TRUE(documents.ok()) << documents.status().ToString();
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ(WriteJson((*documents)[0]),
            R"({"a":1,"b":"1","c":true,"d":"500m","e":null,"f":1.5E0})");
}

TEST(YamlTest, ReadsNumbersLikeKubernetes) {
  const auto typed = [](const std::string& text) {
    return WriteJson(ParseYaml("[" + text + "]")->front());
  };
  EXPECT_EQ(typed("10.0, 1e1, 100e-1, 0x10, 0X1f, 010, 0o10, 0b11, 08, 1_0, +5, -0x1, -07, 0"),
            "[10,10,10,16,31,8,8,3,8,10,5,-1,-7,0]");
  EXPECT_EQ(typed("0.5, 9223372036854775807, 1e300, 12345678901234567890"),
            "[5E-1,9223372036854775807,1E300,1.2345678901234567E19]");
  EXPECT_EQ(
      typed("1e400, 0x, 0x-1, --1, 1:30, 1g.5gb, 2024-01-01, e1, -, ., 1.2.3, 0xg"),
      R"(["1e400","0x","0x-1","--1","1:30","1g.5gb","2024-01-01","e1","-",".","1.2.3","0xg"])");
}

TEST(YamlTest, NamesDocumentAndLineOfAnError) {
  const auto documents = ParseYaml("a: 1\n---\nb: [1,\n");
  ASSERT_FALSE(documents.ok());
  EXPECT_NE(documents.status().message().find("line"), std::string::npos);
}

TEST(YamlTest, RefusesDuplicateKeyInMapping) {
  const auto documents = ParseYaml("x: 1\n---\na: {k: 1}\nb:\n  c: 1\n  d: 2\n  c: 3\n");
  ASSERT_FALSE(documents.ok());
  EXPECT_EQ(documents.status().message(),
            "YAML document 2, line 7, column 3: the key 'c' is already in this mapping");
  EXPECT_FALSE(ParseYaml("a:\n\"a\": 1\n").ok());
  EXPECT_FALSE(ParseYaml("&k a: 1\n*k : 2\n").ok());
  EXPECT_TRUE(ParseYaml("- {a: 1}\n- {a: 1, b: {a: 2}}\n---\na: 1\n").ok());
}

TEST(YamlTest, TerminatesOnTextAfterFlowDocument) {
  for (const char* text : {"{a: b\"c\": d},\"e\": f}]}", "}", "a: 1\n}", "]", "{a: 1}}", "--- }"}) {
    const auto documents = ParseYaml(text);
    EXPECT_FALSE(documents.ok()) << text;
  }
}

TEST(YamlTest, ExpandsAliases) {
  const auto documents =
      ParseYaml("a: &x {k: [1, ~]}\nb: *x\n&y z: 2\nd: {*y : 3}\n---\n- 1\n--- \n");
  ASSERT_TRUE(documents.ok()) << documents.status().ToString();
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ(WriteJson((*documents)[0]),
            R"({"a":{"k":[1,null]},"b":{"k":[1,null]},"z":2,"d":{"z":3}})");
  EXPECT_FALSE(ParseYaml("a: &x [*x]").ok());
  EXPECT_FALSE(ParseYaml("[1]: 2").ok());
  EXPECT_FALSE(ParseYaml("? {a: 1}\n: 2").ok());
  EXPECT_FALSE(ParseYaml("~: 2").ok());
  EXPECT_FALSE(ParseYaml("a: &x [[1]]\nb: *y").ok());
}

TEST(YamlTest, RefusesInvalidUtf8WithPosition) {
  EXPECT_EQ(ParseYaml("a: 1\n---\nitems:\n- {}\n- b: {c: x\xe9y}\n").status().message(),
            "YAML document 2, line 5, column 10: items[1].b.c: is not UTF-8 text");
  EXPECT_EQ(ParseYaml("- [a, \xff]").status().message(),
            "YAML document 1, line 1, column 7: [0][1]: is not UTF-8 text");
  EXPECT_FALSE(ParseYaml("a: {\xff: 1}").ok());
  EXPECT_FALSE(ParseYaml("a: \"\xc3\"").ok());
  EXPECT_TRUE(ParseYaml("a: \xc3\xa9  # caf\xe9 in a comment").ok());
}

TEST(DuplicateKeysTest, FindsDuplicateKeysUpToLimit) {
  const std::string text = R"({"a":[{"x":1},{"x":1,"x":{"y":1,"y":2}}],"a":2})";
  EXPECT_EQ(FindDuplicateKeys(text, 9), (std::vector<std::string>{"a[1].x", "a[1].x.y", "a"}));
  EXPECT_EQ(FindDuplicateKeys(text, 1), std::vector<std::string>{"a[1].x"});
}

TEST(YamlTest, RefusesDepthBeyondItsLimit) {
  EXPECT_TRUE(ParseYaml(std::string(90, '[') + std::string(90, ']')).ok());
  EXPECT_FALSE(ParseYaml(std::string(101, '[') + std::string(101, ']')).ok());
  const std::string half = std::string(60, '[') + "1" + std::string(60, ']');
  const std::string nested = std::string(60, '[') + "*a" + std::string(60, ']');
  EXPECT_TRUE(ParseYaml("a: &a " + half + "\nb: *a\n").ok());
  EXPECT_FALSE(ParseYaml("a: &a " + half + "\nb: " + nested + "\n").ok());
}

TEST(YamlTest, MergeKeyAddsOnlyMissingKeys) {
  const auto documents = ParseYaml(
      "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: {k: 4}}\n"
      "c: {<<: *a, y: 5}\nd: {y: 5, <<: [*a, *b]}\ne: {\"<<\": 7}\n");
  ASSERT_TRUE(documents.ok()) << documents.status().ToString();
  const Json& all = documents->front();
  EXPECT_EQ(WriteJson(all.at("c")), R"({"y":5,"x":1})");
  EXPECT_EQ(WriteJson(all.at("d")), R"({"y":5,"x":1,"z":{"k":4}})");
  EXPECT_EQ(WriteJson(all.at("e")), R"({"<<":7})");
  EXPECT_FALSE(ParseYaml("{<<: 1}").ok());
  EXPECT_FALSE(ParseYaml("{<<: [1]}").ok());
  EXPECT_FALSE(ParseYaml("a: &a {x: 1}\nb: {<<: *a, <<: *a}").ok());
  EXPECT_FALSE(ParseYaml("a: &a {<<: *a}").ok());
}

TEST(YamlTest, RefusesMergeBombs) {
  std::string text = "a0: &a0 {k: [x,x,x,x,x,x,x,x,x,x]}\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " {";
    for (int j = 0; j < 10; ++j) text += "k" + std::to_string(j) + ": {<<: " + last + "}, ";
    text += "<<: " + last + "}\n";
  }
  EXPECT_FALSE(ParseYaml(text).ok());
}

TEST(YamlTest, RefusesAliasBombs) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += last + (j < 9 ? "," : "]\n");
  }
  EXPECT_FALSE(ParseYaml(text).ok());
}

std::string ManyAliases(const std::string& before, const std::string& alias) {
  std::string text = "a: &a " + std::string(131'000, 'x') + "\nb:\n";
  for (int i = 0; i < 43'700; ++i) text += before + alias + "\n";
  return text;
}

// 131 kB of text that 262 kB of aliases would expand to 5.7 GB.
TEST(YamlTest, RefusesAliasesOfLongText) {
  const Status values = ParseYaml(ManyAliases("- ", "*a")).status();
  EXPECT_EQ(values.code(), Code::kInvalid);
  EXPECT_EQ(values.message(),
            "YAML document 1, line 31, column 3: its aliases expand to too much text");
  const Status keys = ParseYaml(ManyAliases("- ", "{*a : 1}")).status();
  EXPECT_EQ(keys.code(), Code::kInvalid);
  EXPECT_EQ(keys.message(),
            "YAML document 1, line 47, column 4: its aliases expand to too much text");
}

TEST(YamlTest, ExpandsOrdinaryAliases) {
  std::string text = "a: &a {image: example/any, args: [one, two, three]}\nb:\n";
  for (int i = 0; i < 1000; ++i) text += "- *a\n";
  const auto documents = ParseYaml(text);
  ASSERT_TRUE(documents.ok()) << documents.status().message();
  EXPECT_EQ(documents->front().at("b").get_array().size(), 1000u);
}

TEST(MillionthsTest, ReadsAndWritesMillionths) {
  EXPECT_EQ(ParseMillionths("2.5"), 2'500'000);
  EXPECT_EQ(ParseMillionths("3"), 3'000'000);
  EXPECT_EQ(ParseMillionths("0.000001"), 1);
  for (const char* text : {"", ".", "1.", ".5", "-1", "1.-5", "0.0000001", "1e3", "1,5", " 1",
                           "9223372036855", "99999999999999999999"}) {
    EXPECT_EQ(ParseMillionths(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseMillionths("9223372036854.775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(MillionthsText(2'500'000), "2.5");
  EXPECT_EQ(MillionthsText(-1), "-0.000001");
  EXPECT_EQ(MillionthsText(10'000'000), "10");
  EXPECT_EQ(MillionthsText(std::numeric_limits<int64_t>::min()), "-9223372036854.775808");
}

}  // namespace
}  // namespace nos
