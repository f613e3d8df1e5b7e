#include <gtest/gtest.h>

#include "telemetry/envelope.h"
#include "telemetry/testing/reports.h"

namespace nos::telemetry {
namespace {

Result<Envelope> Read(const Json& tree) { return ReadEnvelope(WriteJson(tree), kReportStart); }

TEST(EnvelopeTest, InvalidRecordDoesNotAffectOthers) {
  JsonArray records;
  records.push_back({{"kind", "gpu"},
                     {"at", kReportStart},
                     {"gpu", "GPU-1"},
                     {"metrics", {{"power", 250.5}, {"new_metric", 1}}}});
  records.push_back(
      {{"kind", "gpu"}, {"at", kReportStart}, {"gpu", "GPU-2"}, {"metrics", {{"power", "much"}}}});
  records.push_back("no object");
  records.push_back({{"kind", "weather"}, {"at", kReportStart}, {"rain", true}});
  records.push_back({{"kind", "layout"},
                     {"at", kReportStart},
                     {"node", "n"},
                     {"gpus", {{{"gpu", "GPU-1"}, {"instances", 7}}}}});
  records.push_back({{"kind", "pod"},
                     {"at", kReportStart + 2 * kMaxAhead},
                     {"uid", "u"},
                     {"namespace", "a"},
                     {"name", "b"},
                     {"state", "running"}});
  const auto envelope = Read(EnvelopeOf("cluster", 3, records));
  ASSERT_TRUE(envelope.ok()) << envelope.status().ToString();
  EXPECT_EQ(envelope->sequence, 3);
  ASSERT_EQ(envelope->records.size(), 2U);
  EXPECT_EQ(std::get<Readings>(envelope->records[0].what).metrics.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<Unknown>(envelope->records[1].what));
  ASSERT_EQ(envelope->refused.size(), 4U);
  EXPECT_EQ(envelope->refused[0].record, 1U);
  EXPECT_EQ(envelope->refused[0].why, "gpu: metrics: power is no number");
  EXPECT_EQ(envelope->refused[2].why, "layout: gpus: instances is no list of at most 64");
  EXPECT_NE(envelope->refused[3].why.find("future"), std::string::npos);
}

TEST(EnvelopeTest, NodeReportsOnlyItself) {
  JsonArray records = {
      {{"kind", "gpu"}, {"at", kReportStart}, {"gpu", "GPU-1"}, {"metrics", JsonObject()}},
      {{"kind", "layout"}, {"at", kReportStart}, {"node", "n"}, {"gpus", JsonArray()}},
      {{"kind", "xid"}, {"at", kReportStart}, {"gpu", "GPU-1"}, {"xid", 79}},
      {{"kind", "of-later-versions"}, {"at", kReportStart}}};
  const size_t own = records.size();
  records.push_back(
      {{"kind", "layout"}, {"at", kReportStart}, {"node", "other"}, {"gpus", JsonArray()}});
  records.push_back(PodRecord(kReportStart, "team-a", "p", "failed", "nvidia.com/gpu"));
  records.push_back({{"kind", "node"}, {"at", kReportStart}, {"node", "n"}, {"ready", true}});
  records.push_back({{"kind", "quota"},
                     {"at", kReportStart},
                     {"type", "ElasticQuota"},
                     {"namespace", "team-a"},
                     {"name", "q"}});
  for (const char* kind : {"job", "queue", "pool", "decision"}) {
    records.push_back({{"kind", kind},
                       {"at", kReportStart},
                       {"id", "1"},
                       {"namespace", "team-a"},
                       {"name", "x"}});
  }
  records.push_back({{"kind", "event"},
                     {"at", kReportStart},
                     {"object", {{"kind", "Pod"}, {"namespace", "team-a"}, {"name", "p"}}}});
  records.push_back(
      {{"kind", "removed"}, {"at", kReportStart}, {"what", "node"}, {"node", "other"}});
  records.push_back({{"kind", "removed"}, {"at", kReportStart}, {"what", "gpu"}, {"gpu", "GPU-1"}});
  records.push_back(
      {{"kind", "present"}, {"at", kReportStart}, {"what", "pod"}, {"ids", JsonArray()}});
  const auto of_node = Read(EnvelopeOf("node/n", 1, records));
  ASSERT_TRUE(of_node.ok()) << of_node.status().ToString();
  EXPECT_EQ(of_node->records.size(), own);
  ASSERT_EQ(of_node->refused.size(), records.size() - own);
  EXPECT_EQ(of_node->refused[0].why, "layout: node/n does not report for node other");
  EXPECT_EQ(of_node->refused[1].why, "pod: node/n reports only its GPUs");
  const auto of_cluster = Read(EnvelopeOf("cluster", 1, records));
  ASSERT_TRUE(of_cluster.ok());
  EXPECT_EQ(of_cluster->records.size(), records.size());
}

TEST(EnvelopeTest, RejectsInvalidEnvelopes) {
  const Json good = EnvelopeOf("node/n", 1, {});
  EXPECT_TRUE(Read(good).ok());
  for (const char* key : {"schema", "cluster", "source", "boot", "sequence", "records"}) {
    Json bad = good;
    bad.get_object().erase(key);
    EXPECT_EQ(Read(bad).status().code(), Code::kInvalid) << key;
    bad.get_object()[key] = JsonObject();
    EXPECT_EQ(Read(bad).status().code(), Code::kInvalid) << key;
  }
  EXPECT_FALSE(ReadEnvelope("[]", 0).ok());
  EXPECT_FALSE(ReadEnvelope("", 0).ok());
}

TEST(RecordsTest, PoolRecordHasNameWithoutNamespace) {
  Json pool{{"kind", "pool"}, {"at", kReportStart}, {"id", "a100"}, {"name", "a100"}};
  const auto read = ReadRecord(pool);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(std::get<Object>(read->what).kind, Object::Kind::kPool);
  EXPECT_EQ(std::get<Object>(read->what).key, "a100");
  for (const char* key : {"id", "name"}) {
    for (const Json& wrong : {Json(7), Json(""), Json(std::string(1000, 'x')), Json(nullptr)}) {
      Json bad = pool;
      bad.get_object()[key] = wrong;
      EXPECT_EQ(ReadRecord(bad).status().code(), Code::kInvalid) << key << WriteJson(wrong);
    }
  }
}

TEST(RecordsTest, LayoutRoundTrips) {
  const Json report = NodeReport({1, 2, 7}, 0, kReportStart, 1);
  const auto envelope = Read(report);
  ASSERT_TRUE(envelope.ok());
  const auto& layout = std::get<Layout>(envelope->records.at(0).what);
  ASSERT_EQ(layout.gpus.size(), 2U);
  EXPECT_EQ(layout.gpus[0].instances.size(), 7U);
  const auto again = ReadRecord(LayoutRecord(kReportStart, layout));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(std::get<Layout>(again->what), layout);
}

}  // namespace
}  // namespace nos::telemetry
