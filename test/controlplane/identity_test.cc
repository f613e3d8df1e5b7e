// Authentication against the real API server: service accounts with only their roles, expiring
// tokens.
#include <fmt/core.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "contract.h"

namespace nos::kube {
namespace {

const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
const Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles", "Role", true};
const Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding",
                             true};

class IdentityContract : public ContractTest {
 protected:
  void SetUp() override {
    ContractTest::SetUp();
    if (IsSkipped()) return;
    uid_ =
        FindString(Make(kServiceAccounts, {{"metadata", {{"name", "reader"}}}}), "metadata", "uid");
    Make(kRoles, {{"metadata", {{"name", "reader"}}},
                  {"rules",
                   {{{"apiGroups", {""}},
                     {"resources", {"configmaps"}},
                     {"verbs", {"get", "list", "watch"}}}}}});
    Make(kRoleBindings,
         {{"metadata", {{"name", "reader"}}},
          {"subjects", {{{"kind", "ServiceAccount"}, {"name", "reader"}, {"namespace", ns_}}}},
          {"roleRef",
           {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", "reader"}}}});
    Make(kConfigMaps, RecordOf("a"));
    kubeconfig_ =
        ControlPlane(fmt::format("kubeconfig {0} --namespace {0} --serviceaccount reader", ns_));
    token_file_ = ControlPlaneFolder() + "/" + ns_ + ".token";
    good_token_ = *ReadFile(token_file_);
  }
  void TearDown() override {
    if (ns_.empty()) return;
    for (const char* ending : {".token", ".kubeconfig", ".plugin", ".asked"}) {
      std::filesystem::remove(ControlPlaneFolder() + "/" + ns_ + ending);
    }
    ContractTest::TearDown();
  }

  // A token that the API server accepts for that many seconds; negative: already expired.
  std::string TokenFor(int seconds) const {
    return Output(fmt::format("'{}/expired_token.sh' '{}' {} reader {} {}", NOS_CONTROLPLANE_SOURCE,
                              ControlPlaneFolder(), ns_, uid_, seconds));
  }
  static void Write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  Status Read(Transport& transport) const {
    return Client(transport).Get(kConfigMaps, ns_, "a").status();
  }

  std::string uid_, kubeconfig_, token_file_, good_token_;
};

TEST_F(IdentityContract, ServiceAccountHasExactlyItsRolesRights) {
  const auto http = Connect(kubeconfig_);
  Client reader(*http);
  Until([&] { return Read(*http).ok(); });  // roles take effect a moment after they are written
  EXPECT_EQ(reader.Create(kConfigMaps, ns_, RecordOf("b")).status().code(), Code::kPermission);
  const Status refused = reader.Get(kNodes, "", "kwok-0").status();
  EXPECT_EQ(refused.code(), Code::kPermission);
  EXPECT_EQ(refused.message(),
            fmt::format(R"(nodes "kwok-0" is forbidden: User "system:serviceaccount:{}:reader" )"
                        R"(cannot get resource "nodes" in API group "" at the cluster scope)",
                        ns_));
}

TEST_F(IdentityContract, ReplacesExpiredTokenFromFile) {
  Write(token_file_, TokenFor(5));
  const auto http = Connect(kubeconfig_);
  Until([&] { return Read(*http).ok(); });
  Until([&] { return !Read(*http).ok(); });
  EXPECT_EQ(Read(*http).code(), Code::kPermission);
  Write(token_file_, good_token_);
  const Status read = Read(*http);
  EXPECT_TRUE(read.ok()) << read.ToString();
}

TEST_F(IdentityContract, RunsPluginAgainAfterRefusedToken) {
  // Issues an expired token on the first call, then a valid one.
  const std::string plugin = ControlPlaneFolder() + "/" + ns_ + ".plugin";
  const std::string asked = ControlPlaneFolder() + "/" + ns_ + ".asked";
  Write(plugin, fmt::format(R"(#!/bin/sh
token={}
[ -e '{}' ] && token={}
echo asked >> '{}'
echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
  "status":{{"token":"'"$token"'"}}}}'
)",
                            TokenFor(-30), asked, good_token_, asked));
  ASSERT_EQ(chmod(plugin.c_str(), S_IRWXU), 0);
  auto config = LoadConnection(kubeconfig_, "");
  ASSERT_TRUE(config.ok());
  config->token = {};
  ExecPlugin exec;
  exec.api_version = "client.authentication.k8s.io/v1";
  exec.command = plugin;
  config->exec = exec;
  HttpTransport http(*config, kFast);
  Until([&] { return Read(*http_).ok(); });
  const Status read = Read(http);
  EXPECT_TRUE(read.ok()) << read.ToString();
  EXPECT_EQ(*ReadFile(asked), "asked\nasked\n");
}

}  // namespace
}  // namespace nos::kube
