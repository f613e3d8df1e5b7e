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
  const auto envelope = Read(EnvelopeOf("node/n", 3, records));
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
