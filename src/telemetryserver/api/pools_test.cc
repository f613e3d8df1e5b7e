// Node pools: current and past state, and who may read them.
#include "telemetryserver/api/fixture_test.h"

namespace nos::telemetryserver {
namespace {

class PoolApiTest : public ApiTest {
 protected:
  void Send(int64_t sequence, Json record) {
    JsonArray records;
    records.push_back(std::move(record));
    ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", sequence, records)).status.ok());
    ASSERT_TRUE(recorder_->Settle().ok());
  }
  std::vector<int64_t> NodesOf(const std::string& query = "") {
    const Json answer = Get("/api/v1/pools" + query);
    std::vector<int64_t> nodes;
    for (const Json& pool : Find(answer, "pools")->get_array()) {
      nodes.push_back(telemetry::IntegerOr(pool, "nodes", -1));
    }
    return nodes;
  }
  std::string Read(net::BodyStream& stream) {
    std::string all;
    for (std::string part = "x"; !part.empty(); all += part) {
      part.clear();
      EXPECT_TRUE(stream.Read(part));
    }
    return all;
  }
  using Nodes = std::vector<int64_t>;
};

TEST_F(PoolApiTest, AnswersCurrentAndPastPools) {
  Fill();
  clock_.Set(telemetry::kReportStart + 120'000);
  Send(2, PoolRecord(telemetry::kReportStart + 100'000, 4));
  EXPECT_EQ(NodesOf(), Nodes{4});
  EXPECT_EQ(NodesOf("?at=1763760050000"), Nodes{3});
  EXPECT_EQ(NodesOf("?at=1763759999999"), Nodes{});
  Send(3, {{"kind", "removed"},
           {"at", telemetry::kReportStart + 110'000},
           {"what", "pool"},
           {"id", "a100"}});
  EXPECT_EQ(NodesOf(), Nodes{});
  EXPECT_EQ(NodesOf("?at=1763760105000"), Nodes{4});
  EXPECT_EQ(Find(Get("/api/v1/history?kind=pool"), "events")->get_array().size(), 2U);
}

TEST_F(PoolApiTest, PoolsSurviveRestart) {
  Fill();
  api_.reset();
  ingest_.reset();
  Open();
  Serve();
  EXPECT_EQ(NodesOf(), Nodes{3});
}

TEST_F(PoolApiTest, PoolsRequireRightToSeeCluster) {
  Fill();
  auto all = std::move(Ask("/api/v1/stream").stream);
  reader_ = {"kim", false, {"team-0"}};
  auto some = std::move(Ask("/api/v1/stream").stream);
  ASSERT_TRUE(all != nullptr && some != nullptr);
  Read(*all);
  Read(*some);
  Send(2, PoolRecord(telemetry::kReportStart + 80'000, 4));
  EXPECT_EQ(DataOf(Read(*all), "pools").at("pools").at(0).at("kind"), "pool");
  const std::string changes = Read(*some);
  EXPECT_NE(changes.find("event: at\n"), std::string::npos) << "the stream continued";
  EXPECT_EQ(changes.find("a100"), std::string::npos);
  Get("/api/v1/pools", 403);
  EXPECT_EQ(Ask("/api/v1/history").body.find("a100"), std::string::npos);
  reader_ = {"root", true, {}};
  Send(3, {{"kind", "removed"},
           {"at", telemetry::kReportStart + 90'000},
           {"what", "pool"},
           {"id", "a100"}});
  EXPECT_EQ(DataOf(Read(*all), "pools"), Json({{"pools", JsonArray()}}));
}

}  // namespace
}  // namespace nos::telemetryserver
