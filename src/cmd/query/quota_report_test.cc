#include "cmd/query/quota_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/json.h"
#include "gpu/catalogue.h"

namespace nos::cmd {
namespace {

using ::testing::HasSubstr;

class QuotaReportTest : public testing::Test {
 protected:
  std::shared_ptr<cluster::ElasticQuota> Quota(const std::string& ns, const std::string& min,
                                               const std::string& max = "",
                                               const std::string& parent = "") {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->parent = parent;
    quota->meta.ns = ns;
    quota->meta.name = "eq";
    quota->namespaces = {ns};
    quota->min["nos.nebuly.com/gpu-memory"] = *Quantity::Parse(min);
    if (!max.empty()) quota->max["nos.nebuly.com/gpu-memory"] = *Quantity::Parse(max);
    quotas_.push_back(quota);
    return quota;
  }
  // Adds pods, each younger than the previous ones.
  void Pods(const std::string& ns, int count, const std::string& resource) {
    for (int i = 0; i < count; ++i) {
      auto pod = std::make_shared<cluster::Pod>();
      pod->meta.ns = ns;
      pod->meta.name = "p" + std::to_string(i);
      pod->meta.created = Time(std::chrono::seconds(i));
      pod->node_name = "n";
      pod->containers.emplace_back().requests[resource] = Quantity::FromValue(1);
      pods_.push_back(std::move(pod));
    }
  }
  Printout Report() {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = "n";
    LiveCluster live = MakeLiveCluster({node}, pods_, gpu::Catalogue::Builtin());
    live.quotas = quotas_;
    live.claims = claims_;
    return ReportQuotas(live, Time());
  }

  std::vector<quota::SharedQuota> quotas_;
  std::vector<std::shared_ptr<const cluster::Pod>> pods_;
  std::vector<std::shared_ptr<const dra::ResourceClaim>> claims_;
};

TEST_F(QuotaReportTest, ShowsLendersAndBorrowers) {
  Quota("a", "40", "70");
  Quota("b", "10");
  Quota("c", "30");
  Pods("a", 6, "nvidia.com/mig-1g.10gb");
  Pods("b", 1, "nvidia.com/mig-1g.10gb");
  EXPECT_EQ(
      Report().Table().ToString(),
      R"(QUOTA  RESOURCE (UNIT)                 MIN  MAX  USED  GUARANTEED  BORROWED FROM  LENT TO       FIRST TO BE EVICTED
a/eq   nos.nebuly.com/gpu-memory (GB)  40   70   60    55          20 (c/eq 20)   -             a/p5, a/p4
b/eq   nos.nebuly.com/gpu-memory (GB)  10   -    10    13          -              -             -
c/eq   nos.nebuly.com/gpu-memory (GB)  30   -    0     41          -              20 (a/eq 20)  -
)");
}

// Two pods of "a" share a claim for a slice of 10 GB; a third one has a claim without devices.
TEST_F(QuotaReportTest, CountsDevicesOfClaimsOnce) {
  Quota("a", "40");
  Quota("b", "10");
  const auto claim = [&](const std::string& name, const std::string& status) {
    auto read = std::make_shared<dra::ResourceClaim>();
    const std::string json = R"({"metadata": {"namespace": "a", "name": ")" + name +
                             R"("}, "spec": {"devices": {"requests": [{"name": "r", "exactly":
                                {"deviceClassName": "mig.nvidia.com"}}]}})" +
                             status + "}";
    ASSERT_TRUE(dra::ReadResourceClaim(*ParseJson(json), *read).ok());
    claims_.push_back(std::move(read));
  };
  claim("shared", R"(, "status": {"allocation": {"devices": {"results": [
      {"request": "r", "driver": "gpu.nvidia.com", "pool": "n",
       "device": "gpu-0-mig-1g10gb-19-0"}]}}})");
  claim("waits", "");
  for (const auto& [name, of] :
       {std::pair{"p0", "shared"}, std::pair{"p1", "shared"}, std::pair{"p2", "waits"}}) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "a";
    pod->meta.name = name;
    pod->node_name = "n";
    pod->claims.emplace_back().claim = of;
    pods_.push_back(std::move(pod));
  }
  EXPECT_EQ(Report().total,
            "2 quotas: 10 GB of nos.nebuly.com/gpu-memory used, min 50, borrowed 0");
}

TEST_F(QuotaReportTest, TotalsCountEachAmountOnce) {
  Quota("org", "100");
  Quota("team-a", "40", "", "org/eq");
  Quota("other", "30");
  Pods("team-a", 2, "nvidia.com/mig-1g.10gb");
  Pods("other", 5, "nvidia.com/mig-1g.10gb");
  EXPECT_EQ(Report().total,
            "3 quotas: 70 GB of nos.nebuly.com/gpu-memory used, min 130, borrowed 20");
  quotas_.clear();
  Quota("gpus", "1")->min = {{"nvidia.com/gpu", Quantity::FromValue(8)},
                             {"memory", *Quantity::Parse("16Gi")}};
  EXPECT_EQ(Report().total,
            "1 quota: 0 of memory used, min 16Gi, borrowed 0; 0 GPUs of nvidia.com/gpu used, "
            "min 8, borrowed 0");
}

// An ElasticQuota and a CompositeElasticQuota may have the same name.
TEST_F(QuotaReportTest, DistinguishesBothKindsWithSameName) {
  Quota("a", "0");
  Quota("b", "10");
  const auto composite = Quota("b", "10");
  composite->composite = true;
  composite->namespaces = {"c"};
  Pods("a", 2, "nvidia.com/mig-1g.10gb");
  const Printout report = Report();
  EXPECT_EQ(
      report.Table().ToString(),
      R"(QUOTA             RESOURCE (UNIT)                 MIN  MAX  USED  GUARANTEED  BORROWED FROM                      LENT TO       FIRST TO BE EVICTED
b/eq (composite)  nos.nebuly.com/gpu-memory (GB)  10   -    0     20          -                                  10 (a/eq 10)  -
a/eq              nos.nebuly.com/gpu-memory (GB)  0    -    20    0           20 (b/eq (composite) 10, b/eq 10)  -             a/p1, a/p0
b/eq              nos.nebuly.com/gpu-memory (GB)  10   -    0     20          -                                  10 (a/eq 10)  -
)");
  EXPECT_THAT(WriteJson(report.ToJson()),
              HasSubstr("{\"b/eq (composite)\":\"10\",\"b/eq\":\"10\"}"));
}

TEST_F(QuotaReportTest, FitsHundredColumnsAndJsonIsComplete) {
  for (const char* ns : {"team-one", "team-two", "team-three"}) Quota(ns, "30");
  Pods("team-one", 8, "nvidia.com/mig-1g.10gb");
  const Printout out = Report();
  const std::string text = out.Table().ToString(100);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    EXPECT_LE(DisplayWidth(std::string_view(text).substr(at, end - at)), 100U);
    at = end + 1;
  }
  const std::string json = WriteJson(out.ToJson());
  EXPECT_THAT(json, HasSubstr(R"("borrowedFrom":{"team-three/eq":"25","team-two/eq":"25"})"));
  EXPECT_THAT(json, HasSubstr(R"("lentTo":{"team-one/eq":"25"})"));
  EXPECT_THAT(json, HasSubstr(R"("overQuota":["team-one/p7","team-one/p6","team-one/p5")"));
}

TEST_F(QuotaReportTest, ParentLendsItsOwnPart) {
  Quota("org", "100");
  Quota("team-a", "40", "", "org/eq");
  Pods("team-a", 9, "nvidia.com/mig-1g.10gb");
  EXPECT_EQ(*Find(Report().ToJson()[1], "resources", "nos.nebuly.com/gpu-memory", "borrowedFrom"),
            Json(JsonObject{{"org/eq", "50"}}));
  Quota("team-b", "30", "", "org/eq");
  const std::string json = WriteJson(Report().ToJson());
  EXPECT_THAT(json, HasSubstr(R"("borrowedFrom":{"team-b/eq":"25","org/eq":"25"})"));
  const std::string to_a = R"("lentTo":{"team-a/eq":"25"})";
  EXPECT_NE(json.find(to_a), json.rfind(to_a)) << "of org and of team-b: " << json;
}

// Lending goes through the parent's level and down to another member.
TEST_F(QuotaReportTest, BorrowingThroughParentNamesOriginalLenders) {
  Quota("org", "40");
  Quota("team-a", "20", "", "org/eq");
  Quota("team-b", "20", "", "org/eq");
  Quota("other", "60");
  Pods("team-a", 6, "nvidia.com/mig-1g.10gb");
  const std::string json = WriteJson(Report().ToJson());
  // 20 from team-b, and 20 that org borrows.
  EXPECT_THAT(json, HasSubstr(R"("borrowedFrom":{"team-b/eq":"20","other/eq":"20"})"));
  EXPECT_THAT(json, HasSubstr(R"("borrowedFrom":{"other/eq":"20"})"));
  EXPECT_THAT(json, HasSubstr(R"("lentTo":{"org/eq":"20"})"));
}

TEST_F(QuotaReportTest, LimitBoundsGuaranteedAmount) {
  const auto guaranteed = [&](const std::string& ns) {
    for (const Json& quota : Report().ToJson()) {
      if (FindString(quota, "namespace") != ns) continue;
      return std::string(FindString(quota, "resources", "nos.nebuly.com/gpu-memory", "guaranteed"));
    }
    return std::string();
  };
  const auto quota = Quota("a", "10", "12");
  Quota("b", "20");
  EXPECT_EQ(guaranteed("a"), "12");
  quota->borrowing_limit["nos.nebuly.com/gpu-memory"] = Quantity::FromValue(1);
  EXPECT_EQ(guaranteed("a"), "11");
}

TEST_F(QuotaReportTest, NextVictimHasLowestPriority) {
  Quota("a", "10");
  Quota("c", "30");
  Pods("a", 3, "nvidia.com/mig-1g.10gb");
  auto important = std::make_shared<cluster::Pod>(*pods_.back());
  important->priority = 1000;
  pods_.back() = important;  // a/p2, the youngest
  EXPECT_THAT(Report().Table().ToString(), HasSubstr("a/p1, a/p2"));
}

}  // namespace
}  // namespace nos::cmd
