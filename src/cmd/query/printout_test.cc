#include "cmd/query/printout.h"

#include <gtest/gtest.h>

namespace nos::cmd {
namespace {

Printout Nodes() {
  Printout out({{"NAME"}, {"GPUS"}, {"ZONE", Width::kWide}});
  const auto add = [&](const std::string& name, int gpus, std::optional<Time> created) {
    out.Add({"node/" + name,
             {{name, std::to_string(gpus), "a"}},
             JsonObject{{"name", name}, {"gpus", gpus}, {"zones", JsonArray{"a"}}},
             created});
  };
  add("node-10", 8, Time(std::chrono::seconds(30)));
  add("node-2", 16, Time(std::chrono::seconds(10)));
  add("node-1", 4, std::nullopt);
  return out;
}

std::vector<std::string> NamesOf(const Printout& out) {
  std::vector<std::string> names;
  for (const PrintedObject& object : out.objects()) names.push_back(object.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(PrintoutTest, SortsNumbersInTextsAsNumbers) {
  Printout out = Nodes();
  ASSERT_TRUE(out.SortBy("name").ok());
  EXPECT_EQ(NamesOf(out), (Names{"node/node-1", "node/node-2", "node/node-10"}));
}

TEST(PrintoutTest, SortsByNumbersAndByAge) {
  Printout out = Nodes();
  ASSERT_TRUE(out.SortBy("gpus").ok());
  EXPECT_EQ(NamesOf(out), (Names{"node/node-1", "node/node-10", "node/node-2"}));
  ASSERT_TRUE(out.SortBy("age").ok());
  EXPECT_EQ(NamesOf(out), (Names{"node/node-2", "node/node-10", "node/node-1"}))
      << "the oldest first, unknown ages last";
}

TEST(PrintoutTest, TakesThePathsOfKubectl) {
  Printout out = Nodes();
  ASSERT_TRUE(out.SortBy("{.metadata.name}").ok());
  EXPECT_EQ(NamesOf(out).front(), "node/node-1");
  ASSERT_TRUE(out.SortBy(".metadata.creationTimestamp").ok());
  EXPECT_EQ(NamesOf(out).front(), "node/node-2");
}

TEST(PrintoutTest, RefusesAnUnknownKeyAndNamesTheOthers) {
  Printout out = Nodes();
  const Status status = out.SortBy("beauty");
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(), "cannot sort by 'beauty'; the keys are age, gpus, name");
}

TEST(PrintoutTest, ShowsWideColumnsOnlyInAWideTable) {
  const Printout out = Nodes();
  EXPECT_EQ(out.Table().ToString(),
            "NAME     GPUS\n"
            "node-10  8\n"
            "node-2   16\n"
            "node-1   4\n");
  EXPECT_EQ(out.Table(Width::kWide).ToString(),
            "NAME     GPUS  ZONE\n"
            "node-10  8     a\n"
            "node-2   16    a\n"
            "node-1   4     a\n");
}

}  // namespace
}  // namespace nos::cmd
