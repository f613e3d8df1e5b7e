#include "controllers/quota_admission.h"

#include <gtest/gtest.h>

#include "codec/json.h"
#include "codec/yaml.h"

namespace nos::controllers {
namespace {

class QuotaAdmissionTest : public ::testing::Test {
 protected:
  QuotaAdmissionTest() { admission_.SetQuotas({}); }

  static Json Parsed(const std::string& yaml) { return ParseYaml(yaml)->front(); }
  static Json Quota(const std::string& ns, const std::string& spec) {
    return Parsed("metadata: {name: q, namespace: " + ns + "}\nspec: " + spec);
  }
  void Have(const std::string& ns) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    ASSERT_TRUE(ReadElasticQuota(Quota(ns, "{min: {cpu: 1}}"), *quota).ok());
    quota->meta.name = "old";
    admission_.SetQuotas({quota});
  }
  Json Ask(const std::string& operation, const Json& object, const Json& old = nullptr,
           const std::string& kind = "ElasticQuota") {
    const Json review{{"apiVersion", "admission.k8s.io/v1"},
                      {"kind", "AdmissionReview"},
                      {"request",
                       {{"uid", "7"},
                        {"kind", {{"group", "nos.nebuly.com"}, {"kind", kind}}},
                        {"operation", operation},
                        {"object", object},
                        {"oldObject", old}}}};
    const auto answer = admission_.Review(WriteJson(review));
    EXPECT_EQ(answer.code, 200) << answer.body;
    const Json response = *Find(*ParseJson(answer.body), "response");
    EXPECT_EQ(FindString(response, "uid"), "7");
    EXPECT_EQ(Find(response, "allowed")->get_bool(), answer.allowed);
    return response;
  }
  static std::string Why(const Json& response) {
    return std::string(FindString(response, "status", "message"));
  }

  QuotaAdmission admission_;
};

TEST_F(QuotaAdmissionTest, AllowsValidQuotas) {
  EXPECT_EQ(Why(Ask("CREATE", Quota("a", "{min: {cpu: 1}, max: {cpu: 2}}"))), "");
  EXPECT_EQ(Why(Ask("CREATE", Quota("any", "{namespaces: [a, b], min: {cpu: 1}}"), nullptr,
                    "CompositeElasticQuota")),
            "");
}

TEST_F(QuotaAdmissionTest, RefusesInvalidQuotaWithRemedy) {
  Have("a");
  const Json refused = Ask("CREATE", Quota("a", "{min: {cpu: 3}, max: {cpu: 2}}"));
  EXPECT_EQ(Why(refused),
            "namespace a has an ElasticQuota already, old: change that one, or delete it first; "
            "spec.max of cpu is 2, less than the 3 of spec.min: raise max or lower min");
  EXPECT_EQ(Find(refused, "status", "code")->get_int64(), 422);
  EXPECT_EQ(Why(Ask("CREATE", Quota("b", "{weight: 1001}"))),
            "spec.weight: must be from 1 to 1000");
}

TEST_F(QuotaAdmissionTest, WarnsAboutMissingParent) {
  const Json passed = Ask("CREATE", Quota("a", "{parent: x/y}"));
  EXPECT_EQ(nos::View(Find(passed, "warnings")->get_array().at(0).get_string()),
            "there is no quota x/y yet: until then this one has no parent");
}

TEST_F(QuotaAdmissionTest, RefusesUpdateOnlyForNewProblems) {
  const Json bad = Quota("a", "{min: {cpu: 3}, max: {cpu: 2}}");
  EXPECT_EQ(Why(Ask("UPDATE", bad, bad)), "");
  EXPECT_EQ(Why(Ask("UPDATE", Quota("a", "{min: {cpu: 3}, max: {cpu: 2}, weight: 2}"), bad)), "");
  EXPECT_NE(Why(Ask("UPDATE", Quota("a", "{min: {cpu: 4}, max: {cpu: 2}}"), bad)), "");
  // Admitted by an older CRD.
  const Json broken = Quota("a", "{min: {cpu: -1}}");
  EXPECT_EQ(Why(Ask("UPDATE", broken, broken)), "");
  EXPECT_EQ(Why(Ask("UPDATE", Quota("a", "{min: {cpu: 1}}"), broken)), "");
}

TEST_F(QuotaAdmissionTest, AllowsDeletionsAndOtherKinds) {
  Have("a");
  EXPECT_EQ(Why(Ask("DELETE", nullptr, Quota("a", "{}"))), "");
  EXPECT_EQ(Why(Ask("CREATE", Quota("a", "{weight: 0}"), nullptr, "Pod")), "");
}

TEST_F(QuotaAdmissionTest, RejectsMalformedReviews) {
  EXPECT_EQ(admission_.Review("").code, 400);
  EXPECT_EQ(admission_.Review("[]").code, 400);
  EXPECT_EQ(admission_.Review(R"({"apiVersion": "admission.k8s.io/v1"})").code, 400);
  EXPECT_EQ(admission_.Review(std::string(100'000, '[')).code, 400);
  EXPECT_EQ(admission_
                .Review(R"({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                            "request": {"uid": ""}})")
                .code,
            400);
}

TEST_F(QuotaAdmissionTest, IsUnavailableBeforeQuotasAreKnown) {
  const QuotaAdmission fresh;
  EXPECT_FALSE(fresh.Ready().ok());
  EXPECT_EQ(fresh.Review("{}").code, 503);
}

}  // namespace
}  // namespace nos::controllers
