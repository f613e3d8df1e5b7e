#include "controllers/webhook_certificate.h"

#include <gtest/gtest.h>

#include "codec/base64.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"
#include "net/certificate.h"

namespace nos::controllers {
namespace {

using std::chrono::hours, std::chrono::minutes;

const WebhookCertificateConfig kConfig{.ns = "nos",
                                       .secret = "webhook",
                                       .configuration = "nos-operator",
                                       .dns_names = {"nos-webhook.nos.svc"}};

class WebhookCertificateTest : public ::testing::Test {
 protected:
  WebhookCertificateTest() {
    api_.Put({{"kind", "ValidatingWebhookConfiguration"},
              {"metadata", {{"name", "nos-operator"}}},
              {"webhooks", JsonArray{{{"name", "quotas"}, {"failurePolicy", "Ignore"}}}}});
  }
  // Runs until nothing is left to do at this time.
  void Run(WebhookCertificate& certificate, bool leads = true) {
    kube::Client client(api_);
    for (int i = 0; i < 10; ++i) certificate.Step(client, leads, now_);
  }
  std::string Kept(const char* part) {
    const Json* secret = api_.Find("secrets", "nos/webhook");
    return secret == nullptr ? "" : *DecodeBase64(FindString(*secret, "data", part));
  }
  std::string Trusted() {
    const Json& webhook =
        Find(*api_.Find("validatingwebhookconfigurations", "nos-operator"), "webhooks")
            ->get_array()
            .at(0);
    return *DecodeBase64(FindString(webhook, "clientConfig", "caBundle"));
  }
  static bool Serves(const WebhookCertificate& certificate, const std::string& trusted) {
    const KeptCertificate* kept = certificate.kept();
    return kept != nullptr && net::CheckCertificate(kept->certificate, kept->key, trusted).ok();
  }

  Time now_{std::chrono::seconds(1'800'000'000)};
  kube::FakeApi api_;
};

TEST_F(WebhookCertificateTest, IssuesKeepsAndPublishesCertificate) {
  WebhookCertificate leader(kConfig, {}), other(kConfig, {});
  Run(other, false);
  EXPECT_EQ(other.kept(), nullptr);
  EXPECT_TRUE(api_.writes.empty());
  Run(leader);
  ASSERT_TRUE(leader.error().ok()) << leader.error().ToString();
  EXPECT_TRUE(Serves(leader, Trusted()));
  EXPECT_EQ(
      FindString(Find(*api_.Find("validatingwebhookconfigurations", "nos-operator"), "webhooks")
                     ->get_array()
                     .at(0),
                 "failurePolicy"),
      "Ignore");
  Run(other, false);
  ASSERT_NE(other.kept(), nullptr);
  EXPECT_EQ(*other.kept(), *leader.kept());
  const auto facts = net::ReadCertificate(leader.kept()->certificate);
  EXPECT_EQ(facts->until, now_ + kConfig.lifetime);
  EXPECT_EQ(RenewalDue(*leader.kept(), kConfig, now_), now_ + hours(24 * 60));
  // Another replica finds the certificate and changes nothing.
  api_.writes.clear();
  WebhookCertificate again(kConfig, {});
  Run(again);
  EXPECT_TRUE(Serves(again, Trusted()));
  EXPECT_TRUE(api_.writes.empty());
}

TEST_F(WebhookCertificateTest, PublishesBundleToBothKindsOfWebhooks) {
  api_.Put({{"kind", "MutatingWebhookConfiguration"},
            {"metadata", {{"name", "nos-operator"}}},
            {"webhooks", JsonArray{{{"name", "slices"}, {"failurePolicy", "Fail"}}}}});
  const auto trusted = [&] {
    const Json& webhook =
        Find(*api_.Find("mutatingwebhookconfigurations", "nos-operator"), "webhooks")
            ->get_array()
            .at(0);
    return *DecodeBase64(FindString(webhook, "clientConfig", "caBundle"));
  };
  WebhookCertificate other(kConfig, {});
  Run(other);
  EXPECT_EQ(trusted(), "");
  WebhookCertificateConfig config = kConfig;
  config.mutates = true;
  WebhookCertificate leader(config, {});
  Run(leader);
  ASSERT_TRUE(leader.error().ok()) << leader.error().ToString();
  EXPECT_TRUE(Serves(leader, trusted()));
  EXPECT_TRUE(Serves(leader, Trusted()));
}

// At any time the served certificate is trusted.
TEST_F(WebhookCertificateTest, PublishesBundleToConfigMaps) {
  WebhookCertificateConfig config = kConfig;
  config.configuration.clear();
  config.config_map = "server-ca";
  config.config_map_namespaces = {"nos", "agents"};
  for (const std::string& ns : config.config_map_namespaces) {
    api_.Put({{"kind", "ConfigMap"},
              {"metadata", {{"namespace", ns}, {"name", "server-ca"}}},
              {"data", {{"other", "stays"}}}});
  }
  WebhookCertificate certificate(config, {});
  Run(certificate);
  ASSERT_TRUE(certificate.error().ok()) << certificate.error().ToString();
  for (const char* key : {"nos/server-ca", "agents/server-ca"}) {
    const Json& data = *Find(*api_.Find("configmaps", key), "data");
    EXPECT_TRUE(Serves(certificate, std::string(FindString(data, "ca.crt")))) << key;
    EXPECT_EQ(FindString(data, "other"), "stays");
  }
  EXPECT_EQ(Trusted(), "") << "no webhook is configured";
}

TEST_F(WebhookCertificateTest, IsRotatedWithoutAGap) {
  WebhookCertificate leader(kConfig, {});
  Run(leader);
  const KeptCertificate first = *leader.kept();
  const std::string first_trusted = Trusted();
  now_ += hours(24 * 60);
  Run(leader);
  EXPECT_EQ(leader.kept()->certificate, first.certificate);
  EXPECT_FALSE(leader.kept()->next_certificate.empty());
  EXPECT_EQ(net::SplitCertificates(Trusted()).size(), 2U);
  EXPECT_TRUE(Serves(leader, Trusted()));
  EXPECT_EQ(RenewalDue(*leader.kept(), kConfig, now_), now_ + minutes(1));
  now_ += minutes(1);
  Run(leader);
  EXPECT_NE(leader.kept()->certificate, first.certificate);
  EXPECT_TRUE(Kept("next.crt").empty());
  EXPECT_TRUE(Serves(leader, Trusted()));
  EXPECT_FALSE(Serves(leader, first_trusted));
  now_ += hours(24 * 60);
  Run(leader);
  const std::vector<std::string> bundle = net::SplitCertificates(Trusted());
  EXPECT_EQ(bundle.size(), 2U);  // the first authority was dropped
  EXPECT_EQ(std::ranges::find(bundle, first_trusted), bundle.end());
}

TEST_F(WebhookCertificateTest, ServesNewCertificateOnlyWhenTrusted) {
  WebhookCertificate leader(kConfig, {});
  Run(leader);
  const KeptCertificate first = *leader.kept();
  now_ += hours(24 * 60);
  Refuse(api_, "PATCH", "validatingwebhook", kube::HttpStatus(403));
  Run(leader);
  now_ += hours(24);
  Run(leader);
  EXPECT_EQ(leader.error().code(), Code::kPermission);
  EXPECT_EQ(leader.kept()->certificate, first.certificate);
  // An expired certificate is replaced all the same.
  now_ += hours(24 * 29);
  Run(leader);
  EXPECT_NE(leader.kept()->certificate, first.certificate);
}

// Covers API servers that get the bundle late: the write was refused, or the former leader stopped
// before it.
TEST_F(WebhookCertificateTest, WaitsUntilNewAuthorityHasSettled) {
  WebhookCertificate leader(kConfig, {});
  Run(leader);
  const KeptCertificate first = *leader.kept();
  now_ += hours(24 * 60);
  Refuse(api_, "PATCH", "validatingwebhook", kube::HttpStatus(503));
  Run(leader);
  now_ += minutes(2);
  api_.intercept = nullptr;
  WebhookCertificate next_leader(kConfig, {});
  Run(next_leader);
  EXPECT_EQ(net::SplitCertificates(Trusted()).size(), 2U);
  EXPECT_EQ(next_leader.kept()->certificate, first.certificate);
  EXPECT_EQ(next_leader.NextDue(), now_ + minutes(1));
  now_ += minutes(1);
  Run(next_leader);
  EXPECT_NE(next_leader.kept()->certificate, first.certificate);
  EXPECT_TRUE(Serves(next_leader, Trusted()));
}

TEST_F(WebhookCertificateTest, RepairsChangedSecretAndBundle) {
  WebhookCertificate leader(kConfig, {});
  Run(leader);
  Json configuration = *api_.Find("validatingwebhookconfigurations", "nos-operator");
  MakeObject(configuration.get_object()["webhooks"].get_array().at(0), "clientConfig")["caBundle"] =
      "";
  api_.Put(configuration);
  Run(leader);
  EXPECT_TRUE(Serves(leader, Trusted()));
  api_.Remove("secrets", "nos/webhook");
  Run(leader);
  EXPECT_TRUE(Serves(leader, Trusted()));
  EXPECT_FALSE(Kept("tls.key").empty());
  Json secret = *api_.Find("secrets", "nos/webhook");
  MakeObject(secret, "data")["tls.key"] = "bm9uc2Vuc2U=";
  api_.Put(secret);
  Run(leader);
  EXPECT_TRUE(Serves(leader, Trusted()));
  EXPECT_NE(Kept("tls.key"), "nonsense");
}

TEST_F(WebhookCertificateTest, ReissuesCertificateForNewDnsNames) {
  WebhookCertificate before(kConfig, {});
  Run(before);
  WebhookCertificateConfig config = kConfig;
  config.dns_names = {"other.nos.svc"};
  WebhookCertificate after(config, {});
  Run(after);
  EXPECT_EQ(net::ReadCertificate(after.kept()->certificate)->dns_names, config.dns_names);
  EXPECT_TRUE(Serves(after, Trusted()));
}

}  // namespace
}  // namespace nos::controllers
