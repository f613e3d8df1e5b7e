#include "cmd/catalogue_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nos::cmd {
namespace {

using ::testing::HasSubstr;

class CatalogueFlagTest : public ::testing::Test {
 protected:
  ~CatalogueFlagTest() override { std::filesystem::remove(path_); }

  Result<gpu::Catalogue> Read(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadCatalogue(path_);
  }

  // One file per test, because tests run in parallel.
  const std::string path_ = ::testing::TempDir() + "nos-catalogue-" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(CatalogueFlagTest, FileOverridesBuiltinCatalogue) {
  const auto catalogue = Read("remove: [{model: A30}]");
  ASSERT_TRUE(catalogue.ok());
  EXPECT_EQ(catalogue->FindByName("A30"), nullptr);
  EXPECT_NE(ReadCatalogue("")->FindByName("A30"), nullptr);
}

TEST_F(CatalogueFlagTest, RejectsWholeFileForOneInvalidEntry) {
  const auto one = Read("remove: [{model: A30}, {model: A31}]");
  EXPECT_EQ(one.status().code(), Code::kInvalid);
  EXPECT_EQ(one.status().message(), path_ + R"(: remove[1]: no model "A31" in the catalogue)");
  const auto two = Read("remove: [{model: A31}, {model: A32}, {model: A33}]");
  EXPECT_EQ(two.status().message(),
            path_ + R"(: remove[0]: no model "A31" in the catalogue (and 2 more like this))");
  EXPECT_THAT(Read("[").status().message(), HasSubstr(path_));
}

TEST_F(CatalogueFlagTest, LogsIgnoredGeometries) {
  ::testing::internal::CaptureStderr();
  const auto catalogue =
      Read("[{models: [A100-80GB], allowedGeometries: [{3g.20gb: 1}, {7g.79gb: 1}]}]");
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().message();
  EXPECT_EQ(catalogue->FindByName("A100-80GB")->layouts().size(), 2U);  // empty, and 7g
  // Behind the time and the level.
  EXPECT_EQ(log.substr(log.find('"')),
            R"("ignored a geometry that no GPU can have" file=)" + path_ +
                R"( entry="entry [0].allowedGeometries[0]: A100-80GB has no profile \"3g.20gb\"")"
                "\n");
}

}  // namespace
}  // namespace nos::cmd
