#include "cmd/daemon/config_file.h"

#include <gtest/gtest.h>

namespace nos::cmd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Item {
  std::string name = "none";
  int64_t price = -1;
  std::map<std::string, std::string> labels;
};

struct Config {
  std::string address = ":8081", mode = "fast";
  bool elect = true;
  int64_t burst = 10, concurrent = 1;
  Duration idle = milliseconds(300);
  std::vector<Item> items;
};

void Describe(ConfigFields& f, Config& c) {
  f.Group("health", [&] { f.Text("address", c.address, "Where it is served."); });
  f.Word("mode", c.mode, {"fast", "slow"}, "How.");
  f.Flag("elect", c.elect, "Whether.");
  f.Number("burst", c.burst, 1, 100, "How many.");
  f.Renamed("mostAtOnce", "maxConcurrent");
  f.Number("maxConcurrent", c.concurrent, 1, 100, "How many at a time.");
  f.Seconds("idleSeconds", c.idle, milliseconds(10), seconds(60), "How long.");
  f.List(
      "items", c.items.size(), [&](size_t size) { c.items.resize(size); },
      [&](size_t i) {
        f.Text("name", c.items[i].name, "Its name.");
        f.Decimal("price", c.items[i].price, 0, 5'000'000, "Its price.");
        f.Texts("labels", c.items[i].labels, "Its labels.");
      },
      "Several.");
  f.Retired("webhook", "there is none");
  f.Group("leader", [&] { f.Retired("elect", "there is one"); });
}

class ConfigFileTest : public ::testing::Test {
 protected:
  Status Read(const std::string& text) {
    const std::string head = "apiVersion: config.nos.nebuly.com/v1alpha1\nkind: Test\n";
    return ReadRaw(head + text);
  }
  Status ReadRaw(const std::string& text) {
    return ReadConfig(text, "Test", [&](ConfigFields& f) { Describe(f, config_); }, warnings_);
  }
  Config config_;
  std::vector<std::string> warnings_;
};

TEST_F(ConfigFileTest, ReadsGivenFieldsAndKeepsDefaults) {
  ASSERT_TRUE(Read("health: {address: ':1'}\nidleSeconds: 1.5\nmode: slow\nelect: false").ok());
  EXPECT_EQ(config_.address, ":1");
  EXPECT_EQ(config_.idle, milliseconds(1500));
  EXPECT_EQ(config_.mode, "slow");
  EXPECT_FALSE(config_.elect);
  EXPECT_EQ(config_.burst, 10);
  ASSERT_TRUE(Read("idleSeconds: 20s").ok()) << "Go duration syntax";
  EXPECT_EQ(config_.idle, seconds(20));
}

TEST_F(ConfigFileTest, ReadsListsOfMappings) {
  ASSERT_TRUE(Read("items: [{price: 2.5, labels: {zone: a}}, {name: b, price: '0.000001'}]").ok());
  ASSERT_EQ(config_.items.size(), 2U);
  EXPECT_EQ(config_.items[0].name, "none");
  EXPECT_EQ(config_.items[0].price, 2'500'000);
  EXPECT_EQ(config_.items[0].labels.at("zone"), "a");
  EXPECT_EQ(config_.items[1].price, 1);
}

TEST_F(ConfigFileTest, NamesTheItemWithAProblem) {
  for (const char* price : {"5.1", "-1", "0.0000001", "much", "[1]", "1e9"}) {
    const Status read = Read("items: [{}, {price: " + std::string(price) + "}]");
    EXPECT_EQ(read.code(), Code::kInvalid) << price;
    EXPECT_NE(read.message().find("items[1].price"), std::string::npos) << read.message();
  }
  EXPECT_NE(Read("items: [{labels: {a: 1}}]").message().find("items[0].labels"), std::string::npos);
  EXPECT_NE(Read("items: [{prise: 1}]").message().find("items[0].prise"), std::string::npos);
  EXPECT_FALSE(Read("items: [1]").ok());
  EXPECT_FALSE(Read("items: {}").ok());
}

TEST_F(ConfigFileTest, PrintedListCanBeRead) {
  config_.items = {{"a", 2'500'000, {{"zone", "x"}}}, {"b", -1, {}}};
  const std::string printed = PrintConfig("Test", [&](ConfigFields& f) { Describe(f, config_); });
  config_.items.clear();
  ASSERT_TRUE(ReadRaw(printed).ok()) << printed;
  ASSERT_EQ(config_.items.size(), 2U);
  EXPECT_EQ(config_.items[0].price, 2'500'000);
  EXPECT_EQ(config_.items[0].labels.at("zone"), "x");
  EXPECT_EQ(config_.items[1].price, -1);
}

TEST_F(ConfigFileTest, EmptyFileMeansDefaults) {
  EXPECT_TRUE(ReadRaw("").ok());
  EXPECT_TRUE(Read("health:\nburst: null").ok()) << "nulls as left by templates";
  EXPECT_EQ(config_.burst, 10);
}

TEST_F(ConfigFileTest, ReadsRenamedKeyUnderItsOldName) {
  ASSERT_TRUE(Read("mostAtOnce: 7").ok());
  EXPECT_EQ(config_.concurrent, 7);
  EXPECT_EQ(warnings_, std::vector<std::string>{"mostAtOnce is deprecated: use maxConcurrent"});
  warnings_.clear();
  ASSERT_TRUE(Read("maxConcurrent: 8").ok());
  EXPECT_EQ(config_.concurrent, 8);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ConfigFileTest, CountsNullAsUnsetBesideOldName) {
  ASSERT_TRUE(Read("mostAtOnce: 7\nmaxConcurrent: null").ok());
  EXPECT_EQ(config_.concurrent, 7);
  ASSERT_TRUE(Read("mostAtOnce: null\nmaxConcurrent: 8").ok());
  EXPECT_EQ(config_.concurrent, 8);
}

TEST_F(ConfigFileTest, ChecksRenamedKeyAndRejectsBothNames) {
  EXPECT_EQ(Read("mostAtOnce: 0").code(), Code::kInvalid);
  EXPECT_NE(Read("mostAtOnce: 7\nmaxConcurrent: 7").message().find("mostAtOnce: renamed"),
            std::string::npos);
}

TEST_F(ConfigFileTest, ReportsAllProblemsTogether) {
  const Status read =
      Read("health: {adress: x}\nmode: other\nelect: 1\nburst: 101\nidleSeconds: -1\nnew: 1");
  EXPECT_EQ(read.code(), Code::kInvalid);
  EXPECT_EQ(read.message(),
            "health.adress: unknown field; mode: expected one of fast, slow; elect: "
            "expected true or false; burst: expected an integer from 1 to 100; idleSeconds: "
            "expected a number of seconds from 0.01 to 60; new: unknown field");
}

TEST_F(ConfigFileTest, RejectsOutOfRangeNumbers) {
  for (const char* value : {".nan", ".inf", "1e300", "-0.0001", "[]", "{}", "''", "1e9h"}) {
    EXPECT_FALSE(Read(std::string("idleSeconds: ") + value).ok()) << value;
  }
  EXPECT_EQ(config_.idle, milliseconds(300));
}

TEST_F(ConfigFileTest, RetiredFieldsGiveWarning) {
  EXPECT_TRUE(Read("webhook: {port: 9443}").ok());
  EXPECT_EQ(warnings_, std::vector<std::string>{"webhook has no effect: there is none"});
}

TEST_F(ConfigFileTest, RejectsOtherKindsAndVersions) {
  EXPECT_FALSE(ReadRaw("kind: Test").ok());
  EXPECT_FALSE(ReadRaw("apiVersion: config.nos.nebuly.com/v1alpha1\nkind: Other").ok());
  EXPECT_FALSE(ReadRaw("[1]").ok());
  EXPECT_FALSE(ReadRaw("a: [").ok());
  EXPECT_FALSE(Read("---\nb: 1").ok());
}

TEST_F(ConfigFileTest, PrintedConfigCanBeRead) {
  config_.address = "a \"b\": #c";
  config_.idle = milliseconds(1250);
  config_.elect = false;
  const std::string printed = PrintConfig("Test", [&](ConfigFields& f) { Describe(f, config_); });
  // The group leader is left out, because it has retired keys only.
  EXPECT_EQ(printed, R"(apiVersion: config.nos.nebuly.com/v1alpha1
kind: Test
health:
  # Where it is served.
  address: "a \"b\": #c"
# How. One of fast, slow.
mode: fast
# Whether.
elect: false
# How many.
burst: 10
# How many at a time.
maxConcurrent: 1
# How long.
idleSeconds: 1.25
# Several.
items: []
)");
  config_ = Config();
  const Status read = ReadRaw(printed);
  ASSERT_TRUE(read.ok()) << read.message() << "\n" << printed;
  EXPECT_EQ(config_.address, "a \"b\": #c");
  EXPECT_EQ(config_.idle, milliseconds(1250));
  EXPECT_FALSE(config_.elect);
}

}  // namespace
}  // namespace nos::cmd
