#include "cluster/elastic_quota.h"

#include <gtest/gtest.h>

#include "codec/yaml.h"

namespace nos::cluster {
namespace {

Json Parsed(const std::string& yaml) { return ParseYaml(yaml)->front(); }

TEST(ElasticQuotaTest, ReadsQuotasOfTheGoSystem) {
  ElasticQuota quota;
  ASSERT_TRUE(ReadElasticQuota(Parsed(R"(
apiVersion: nos.nebuly.com/v1alpha1
kind: ElasticQuota
metadata: {name: quota-a, namespace: team-a}
spec:
  min: {cpu: 2, nos.nebuly.com/gpu-memory: "16"}
  max: {cpu: 10}
status: {used: {cpu: 1}, podsOverQuota: 2, conditions: [{type: InForce, status: "True"}]})"),
                               quota)
                  .ok());
  EXPECT_EQ(quota.Key(), "team-a/quota-a");
  EXPECT_EQ(quota.namespaces, std::vector<std::string>{"team-a"});
  EXPECT_EQ(quota.min.at("nos.nebuly.com/gpu-memory").Value(), 16);
  EXPECT_EQ(quota.max.at("cpu").Value(), 10);
  EXPECT_EQ(quota.weight, 1);
  EXPECT_TRUE(quota.parent.empty());
  EXPECT_EQ(quota.status.used.at("cpu").Value(), 1);
  EXPECT_EQ(quota.status.pods_over_quota, 2);
  EXPECT_NE(FindCondition(quota.status.conditions, "InForce"), nullptr);
}

TEST(ElasticQuotaTest, ReadsCompositeQuotasWithAllFields) {
  ElasticQuota quota;
  ASSERT_TRUE(ReadCompositeElasticQuota(Parsed(R"(
metadata: {name: q, namespace: any}
spec:
  namespaces: [a, b]
  borrowingLimit: {cpu: 1}
  lendingLimit: {memory: 1Gi}
  weight: 3
  parent: org/q)"),
                                        quota)
                  .ok());
  EXPECT_TRUE(quota.composite);
  EXPECT_EQ(quota.namespaces, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(quota.borrowing_limit.at("cpu").Value(), 1);
  EXPECT_EQ(quota.lending_limit.at("memory").Value(), int64_t{1} << 30);
  EXPECT_EQ(quota.weight, 3);
  EXPECT_EQ(quota.parent, "org/q");
}

TEST(ElasticQuotaTest, ReportsInvalidFields) {
  ElasticQuota quota;
  const auto error = [&](const std::string& spec) {
    return ReadElasticQuota(Parsed("metadata: {name: q}\nspec: " + spec), quota).message();
  };
  EXPECT_EQ(error("{min: {cpu: -1}}"), "spec.min[cpu]: must not be negative");
  EXPECT_EQ(error("{weight: 0}"), "spec.weight: must be from 1 to 1000");
  EXPECT_EQ(error("{parent: 7}"), "spec.parent: must be a string, not a number");
  EXPECT_EQ(ReadElasticQuota(Parsed("{}"), quota).message(), "metadata.name: is missing");
}

}  // namespace
}  // namespace nos::cluster
