#include "telemetryserver/limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "codec/json.h"
#include "telemetry/testing/temp_folder.h"
#include "telemetryserver/audit.h"

namespace nos::telemetryserver {
namespace {

using std::chrono::seconds;

const Time kStart(seconds(1'800'000'000));

TEST(LimitsTest, AllowsOneActionAtATimePerReader) {
  Limits limits({});
  auto first = limits.Begin("kim");
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(limits.Begin("kim"), nullptr);
  const auto b = limits.Begin("b"), c = limits.Begin("c"), d = limits.Begin("d");
  EXPECT_EQ(limits.Begin("e"), nullptr) << "limit of all readers";
  first.reset();
  EXPECT_NE(limits.Begin("kim"), nullptr);
}

class AuditTest : public ::testing::Test {
 protected:
  std::vector<Json> Lines(const std::string& path) {
    std::vector<Json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const auto json = ParseJson(line);
      EXPECT_TRUE(json.ok()) << line;
      lines.push_back(json.value_or(Json()));
    }
    return lines;
  }
  telemetry::TempFolder folder_;
  const std::string path_ = folder_.path() + "/audit.log";
};

TEST_F(AuditTest, WritesOneLinePerAction) {
  auto audit = Audit::Open(path_, 1 << 20);
  ASSERT_TRUE(audit.ok()) << audit.status().ToString();
  (*audit)->Write({"submit", "kim", "10.0.0.7", "prod", "team-a/x\n{\"forged\":1}", "done", ""},
                  kStart);
  const auto lines = Lines(path_);
  ASSERT_EQ(lines.size(), 1U) << "a line break in a name does not start a new line";
  EXPECT_EQ(FindString(lines[0], "who"), "kim");
  EXPECT_EQ(FindString(lines[0], "what"), "team-a/x\n{\"forged\":1}");
  EXPECT_EQ(Find(lines[0], "at")->to_number<int64_t>(), 1'800'000'000'000);
}

TEST_F(AuditTest, RotatesFileAtLimit) {
  auto audit = Audit::Open(path_, 2000);
  ASSERT_TRUE(audit.ok());
  for (int i = 0; i < 100; ++i) {
    (*audit)->Write({"what-if", "kim", "", "", std::to_string(i), "done", ""}, kStart);
  }
  EXPECT_LE(std::filesystem::file_size(path_), 2000U);
  EXPECT_LE(std::filesystem::file_size(path_ + ".1"), 2000U);
  EXPECT_EQ(FindString(Lines(path_).back(), "what"), "99");
}

TEST_F(AuditTest, BoundsLinesOfUnauthenticatedClients) {
  auto audit = Audit::Open(path_, 1 << 20);
  ASSERT_TRUE(audit.ok());
  for (int i = 0; i < 1000; ++i) {
    (*audit)->WriteBounded({"sign-in", "", "10.0.0.7", "", "", "refused", "forged"}, kStart);
  }
  EXPECT_EQ(Lines(path_).size(), 50U);
  (*audit)->WriteBounded({"sign-in", "", "", "", "", "refused", ""}, kStart + seconds(1));
  EXPECT_EQ(Find(Lines(path_).back(), "unwritten")->to_number<int>(), 950);
}

TEST_F(AuditTest, RejectsUnwritableFileAtStart) {
  EXPECT_EQ(Audit::Open(folder_.path() + "/none/audit.log", 1).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace nos::telemetryserver
