#include "kube/kubeconfig.h"

#include <gtest/gtest.h>

namespace nos::kube {
namespace {

constexpr std::string_view kFile = R"(
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c
  cluster: {server: "https://10.0.0.1:6443/", certificate-authority-data: UEVN}
- name: insecure
  cluster: {server: "https://10.0.0.1", insecure-skip-tls-verify: true}
users:
- name: u
  user: {token: secret}
- name: e
  user: {exec: {command: aws}}
contexts:
- name: one
  context: {cluster: c, user: u}
- name: two
  context: {cluster: insecure, user: u}
- name: three
  context: {cluster: c, user: e}
- name: four
  context: {cluster: missing, user: u}
)";

TEST(KubeconfigTest, ReadsTheCurrentContext) {
  const auto endpoint = ParseKubeconfig(kFile, "", "");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status().ToString();
  EXPECT_EQ(endpoint->server, "https://10.0.0.1:6443");
  EXPECT_EQ(endpoint->ca_pem, "PEM");
  EXPECT_EQ(endpoint->token, "secret");
}

TEST(KubeconfigTest, RefusesWhatIsUnsafeOrMissing) {
  EXPECT_EQ(ParseKubeconfig(kFile, "two", "").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseKubeconfig(kFile, "three", "").status().code(), Code::kUnimplemented);
  EXPECT_EQ(ParseKubeconfig(kFile, "four", "").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseKubeconfig(kFile, "none", "").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseKubeconfig("[]", "", "").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseKubeconfig("a: [", "", "").status().code(), Code::kInvalid);
}

TEST(KubeconfigTest, NamesAMissingFile) {
  const auto endpoint = LoadKubeconfig("/nonexistent/config", "");
  EXPECT_EQ(endpoint.status().code(), Code::kNotFound);
  EXPECT_NE(endpoint.status().message().find("/nonexistent/config"), std::string::npos);
}

}  // namespace
}  // namespace nos::kube
