#include "cmd/catalogue_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nos::cmd {
namespace {

using ::testing::AllOf;
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
  EXPECT_THAT(one.status().message(), AllOf(HasSubstr(path_ + ": "), HasSubstr("A31")));
  const auto two = Read("remove: [{model: A31}, {model: A32}, {model: A33}]");
  EXPECT_THAT(two.status().message(), AllOf(HasSubstr("A31"), HasSubstr("(and 2 more")));
  EXPECT_THAT(Read("[").status().message(), HasSubstr(path_));
}

TEST_F(CatalogueFlagTest, LogsIgnoredGeometries) {
  ::testing::internal::CaptureStderr();
  const auto catalogue =
      Read("[{models: [A100-80GB], allowedGeometries: [{3g.20gb: 1}, {7g.79gb: 1}]}]");
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().message();
  EXPECT_EQ(catalogue->FindByName("A100-80GB")->layouts().size(), 2U);  // empty, and 7g
  EXPECT_THAT(log, AllOf(HasSubstr("ignored a geometry"), HasSubstr(path_), HasSubstr("3g.20gb")));
}

}  // namespace
}  // namespace nos::cmd
