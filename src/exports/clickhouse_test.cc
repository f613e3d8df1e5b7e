// Exports rows to a double of ClickHouse. test/integration/clickhouse_test.mjs uses a real one.
#include "exports/clickhouse.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <set>

#include "codec/gzip.h"
#include "exports/clickhouse_schema.h"
#include "exports/scene_test.h"

namespace nos::exports {
namespace {

using telemetry::EnvelopeOf, telemetryserver::kDay, telemetry::kReportStart, telemetry::PodRecord;

// Decodes RowBinary.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool done() const { return at_ >= bytes_.size(); }
  template <typename Number>
  Number Take() {
    Number number{};
    if (at_ + sizeof(number) > bytes_.size()) {
      ADD_FAILURE() << "cut off";
      at_ = bytes_.size();
      return number;
    }
    std::memcpy(&number, bytes_.data() + at_, sizeof(number));
    at_ += sizeof(number);
    return number;
  }
  std::string Text() {
    size_t size = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = Take<unsigned char>();
      size |= size_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    std::string text = bytes_.substr(at_, size);
    at_ += size;
    return text;
  }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

class ClickHouseTest : public ExportScene {
 protected:
  void SetUp() override {
    ExportScene::SetUp();
    destination_ = *Destination::For({.url = "http://127.0.0.1:9"}, "e");
    transport_.answer = [this](const kube::ApiRequest& request) { return Answer(request); };
  }
  Result<kube::ApiResponse> Answer(const kube::ApiRequest& request) {
    const std::string sql = request.Query("query");
    statements_.push_back(sql);
    if (const kube::ApiResponse answer = verdict_(sql); answer.code != 200) return answer;
    if (sql.starts_with("SELECT max(version)")) return AnswerOf(200, version_ + "\n");
    if (sql.starts_with("SELECT DISTINCT ")) {
      return AnswerOf(200, sql.find("'samples'") != sql.npos ? old_ : "");
    }
    if (sql.starts_with("INSERT INTO telemetry.schema_versions SELECT 1")) version_ = "1";
    if (sql.find("RowBinary") == sql.npos) return AnswerOf(200);
    EXPECT_EQ(request.content_encoding, "gzip");
    Reader rows(*Gunzip(request.text, size_t{1} << 26));
    std::set<uint16_t> days;
    while (!rows.done()) {
      days.insert(rows.Take<uint16_t>());
      if (sql.find(".samples ") != sql.npos) ReadSample(rows);
      if (sql.find(".records ") != sql.npos) ReadRecord(rows);
      if (sql.find(".envelopes ") != sql.npos) ReadEnvelope(rows);
    }
    EXPECT_EQ(days.size(), 1U) << "rows of one INSERT are of one day";
    return AnswerOf(200);
  }
  void ReadSample(Reader& rows) {
    const std::string cluster = rows.Text(), subject = rows.Text(), metric = rows.Text();
    const auto at = rows.Take<int64_t>();
    samples_[cluster + " " + subject + " " + metric][at] = rows.Take<double>();
    const std::string node = rows.Text(), ns = rows.Text();
    holders_[cluster + " " + subject] = node + " " + ns + "/" + rows.Text();
  }
  void ReadRecord(Reader& rows) {
    const std::string cluster = rows.Text(), kind = rows.Text(), object = rows.Text();
    const auto at = rows.Take<int64_t>();
    const std::string source = rows.Text(), boot = rows.Text();
    const auto sequence = rows.Take<uint64_t>();
    const auto number = rows.Take<uint32_t>();
    const std::string identity = cluster + " " + source + " " + boot + " " +
                                 std::to_string(sequence) + "." + std::to_string(number);
    ++records_[identity + " " + kind + " " + object + " " + std::to_string(at - kReportStart)];
    EXPECT_EQ(FindString(*ParseJson(rows.Text()), "kind"), kind);
  }
  void ReadEnvelope(Reader& rows) {
    const std::string cluster = rows.Text(), source = rows.Text(), boot = rows.Text();
    const auto sequence = rows.Take<uint64_t>();
    rows.Take<int64_t>();
    rows.Take<int64_t>();
    const auto lost = rows.Take<uint64_t>();
    ++envelopes_[cluster + " " + source + " " + boot + " " + std::to_string(sequence) + " lost " +
                 std::to_string(lost) + " records " + std::to_string(rows.Take<uint32_t>())];
  }
  void Begin(int64_t samples_days = 90) {
    ClickHouseOptions options{"telemetry", samples_days, 400};
    ExportScene::Begin(ClickHouse::kName,
                       std::make_unique<ClickHouse>(options, destination_, transport_, metrics_));
  }
  size_t Statements(const std::string& begin) {
    return static_cast<size_t>(std::ranges::count_if(
        statements_, [&](const std::string& sql) { return sql.starts_with(begin); }));
  }

  Destination destination_;
  std::function<kube::ApiResponse(const std::string&)> verdict_ = [](const auto&) {
    return AnswerOf(200);
  };
  std::string version_ = "0", old_;
  std::vector<std::string> statements_;
  std::map<std::string, std::map<int64_t, double>> samples_;
  std::map<std::string, std::string> holders_;
  std::map<std::string, int> records_, envelopes_;
};

TEST_F(ClickHouseTest, CreatesTablesOnceAndRowsHaveIdentity) {
  Begin();
  Report({1, 1, 2}, 0, 3);
  Json lossy = EnvelopeOf("cluster", 7, {PodRecord(kReportStart, "a", "p", "running", "r", "n")});
  lossy.get_object()["lost"] = 5;
  lossy.get_object()["cluster"] = "other";
  ASSERT_TRUE(Take(lossy).status.ok());
  Deliver();
  EXPECT_EQ(statements_.front(), "CREATE DATABASE IF NOT EXISTS telemetry");
  EXPECT_EQ(Statements("CREATE TABLE IF NOT EXISTS telemetry."), 4U);
  const auto& power = samples_["prod gpu/" + telemetry::GpuName(0, 0) + " power"];
  ASSERT_EQ(power.size(), 3U);
  EXPECT_EQ(power.begin()->second, Raw("gpu/" + telemetry::GpuName(0, 0), "power")[0].mean);
  EXPECT_EQ(samples_["prod cluster allocated"].size(), 3U);
  EXPECT_EQ(records_["other cluster boot-1 7.0 pod uid-a-p 0"], 1);
  EXPECT_EQ(envelopes_["other cluster boot-1 7 lost 5 records 1"], 1);
  EXPECT_EQ(envelopes_.size(), 4U);
  EXPECT_EQ(holders_["prod instance/" + telemetry::InstanceName(0, 0, 0)],
            telemetry::NodeName(0) + " team-0/pod-0-0-0");
  EXPECT_EQ(holders_["prod gpu/" + telemetry::GpuName(0, 0)], telemetry::NodeName(0) + " /");
  // After a restart the existing tables are used.
  statements_.clear();
  exporter_.reset();
  Begin();
  Report({1, 1, 2}, 3, 1);
  Deliver();
  EXPECT_EQ(Statements("CREATE TABLE"), 1U);  // the table of schema versions
  EXPECT_EQ(Statements("INSERT INTO telemetry.schema_versions"), 0U);
}

TEST_F(ClickHouseTest, RejectsDatabaseOfNewerVersion) {
  version_ = "9";
  Begin();
  Report({1, 1, 1}, 0, 1);
  Deliver();
  EXPECT_EQ(exporter_->trouble().message(),
            fmt::format("database telemetry has schema version 9, this nos supports up to {}: use "
                        "the newer nos, or another database",
                        kClickHouseMigrations.size()));
  EXPECT_TRUE(samples_.empty());
}

TEST_F(ClickHouseTest, RetriesFailedInsertsOnly) {
  Begin();
  Report({1, 1, 1}, 0, 3);
  bool down = true;
  verdict_ = [&](const std::string& sql) {
    return down && sql.starts_with("INSERT INTO telemetry.envelopes")
               ? AnswerOf(500, "Code: 241, e.what() = memory")
               : AnswerOf(200);
  };
  Deliver();
  EXPECT_FALSE(exporter_->trouble().ok());
  EXPECT_EQ(Statements("INSERT INTO telemetry.samples"), 1U);
  down = false;
  Deliver();
  EXPECT_TRUE(exporter_->trouble().ok()) << exporter_->trouble().message();
  EXPECT_EQ(Statements("INSERT INTO telemetry.samples"), 1U);
  EXPECT_FALSE(records_.empty());
  EXPECT_EQ(envelopes_.size(), 3U);
}

TEST_F(ClickHouseTest, DropsAndCountsRejectedRows) {
  Begin();
  Report({1, 1, 1}, 0, 1);
  verdict_ = [](const std::string& sql) {
    return sql.starts_with("INSERT INTO telemetry.records")
               ? AnswerOf(400, "Code: 26, e.what() = what is that?")
               : AnswerOf(200);
  };
  Deliver();
  EXPECT_TRUE(exporter_->trouble().ok());
  EXPECT_EQ(envelopes_.size(), 1U);
  EXPECT_EQ(Metric("nos_telemetry_export_dropped_total{export=\"clickHouse\",reason=\"refused\"}"),
            1);
}

// The double acts as a proxy that limits the request size.
TEST_F(ClickHouseTest, SplitsInsertsThatAreTooLarge) {
  Begin();
  Report({1, 1, 1}, 0, 1);
  int refused = 0;
  verdict_ = [&](const std::string& sql) {
    const bool first = sql.starts_with("INSERT INTO telemetry.samples") && refused++ == 0;
    return first ? AnswerOf(413, "too large") : AnswerOf(200);
  };
  Deliver();
  EXPECT_TRUE(exporter_->trouble().ok());
  EXPECT_EQ(refused, 3) << "the whole request, then two halves";
  EXPECT_EQ(Metric("nos_telemetry_export_dropped_total{export=\"clickHouse\",reason=\"refused\"}"),
            -1)
      << "nothing is dropped";
}

TEST_F(ClickHouseTest, InsertsPerDayAndSkipsExpiredDays) {
  Begin(2);
  for (int day = 0; day < 4; ++day) {
    ASSERT_TRUE(Take(EnvelopeOf("node/n", day + 1,
                                {{{"kind", "gpu"},
                                  {"at", kReportStart - day * kDay},
                                  {"gpu", "G"},
                                  {"index", 0},
                                  {"metrics", {{"power", day}}}}}))
                    .status.ok());
  }
  old_ = "2025-10-01\n2025-10-02\n";
  Deliver();
  EXPECT_EQ(samples_["prod gpu/G power"].size(), 3U);
  EXPECT_EQ(Metric("nos_telemetry_export_dropped_total{export=\"clickHouse\",reason=\"late\"}"), 1);
  EXPECT_EQ(Statements("ALTER TABLE telemetry.samples DROP PARTITION '2025-10-01'"), 1U);
  EXPECT_EQ(Statements("ALTER TABLE telemetry.samples DROP PARTITION"), 2U);
  EXPECT_EQ(Statements("ALTER TABLE"), 2U);
}

TEST_F(ClickHouseTest, RejectsInvalidDatabaseNames) {
  EXPECT_TRUE(ClickHouse::CheckDatabase("nos_2").ok());
  for (const char* name : {"", "2nos", "a b", "a;DROP", "a`"}) {
    EXPECT_FALSE(ClickHouse::CheckDatabase(name).ok()) << name;
  }
}

}  // namespace
}  // namespace nos::exports
