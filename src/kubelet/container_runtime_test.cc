#include "kubelet/container_runtime.h"

#include "kubelet/fixture_test.h"
#include "kubelet/testing/fake_runtime.h"

namespace nos::kubelet {
namespace {

class ContainerRuntimeTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string socket_ = folder_ / "run/containerd.sock";
  FakeRuntime runtime_;
};

TEST_F(ContainerRuntimeTest, GivesItsConfiguration) {
  ASSERT_TRUE(runtime_.Serve(socket_, R"({"enableCDI":true})").ok());
  EXPECT_EQ(ReadRuntimeConfig(socket_).value(), R"({"enableCDI":true})");
}

TEST_F(ContainerRuntimeTest, MayHaveEmptyConfiguration) {
  ASSERT_TRUE(runtime_.Serve(socket_, "").ok());
  EXPECT_EQ(ReadRuntimeConfig(socket_).value(), "");
}

TEST_F(ContainerRuntimeTest, SaysWhyNot) {
  EXPECT_EQ(ReadRuntimeConfig(socket_).status().code(), Code::kUnavailable) << "no socket";
  ASSERT_TRUE(runtime_.Serve(socket_, "", GrpcCode::kUnimplemented).ok());
  EXPECT_EQ(ReadRuntimeConfig(socket_).status().code(), Code::kUnimplemented);
}

TEST_F(ContainerRuntimeTest, RefusesNonsense) {
  const auto call = [](std::string_view, const std::string&) {
    return GrpcAnswer{GrpcCode::kOk, "\xff\xff\xff"};
  };
  GrpcServer server{{}, [] {}};
  ASSERT_TRUE(server.Serve(folder_ / "x.sock", {call, {}}).ok());
  EXPECT_EQ(ReadRuntimeConfig(folder_ / "x.sock").status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace nos::kubelet
