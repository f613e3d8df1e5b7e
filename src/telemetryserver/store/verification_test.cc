#include "telemetryserver/verification.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "telemetryserver/store/sqlite.h"
#include "telemetryserver/testing/fixture.h"

namespace nos::telemetryserver {
namespace {

class VerificationTest : public RecorderFixture {
 protected:
  void Fill() {
    Open();
    Report({2, 2, 3}, 0, 80);  // 800 s: one flush
  }
  void Change(const std::string& sql) {
    auto db = Sqlite::Open(options_.store.path, Sqlite::Mode::kWrite);
    ASSERT_TRUE(db.ok()) << db.status().ToString();
    const Status changed = db->Execute(sql);
    ASSERT_TRUE(changed.ok()) << changed.ToString();
  }
  std::vector<StoreCheck> Verify() {
    const auto checks = VerifyStore(options_.store.path, {});
    EXPECT_TRUE(checks.ok()) << checks.status().ToString();
    return checks.value_or({});
  }
  // The one check that found damage.
  StoreCheck Found() {
    const std::vector<StoreCheck> checks = Verify();
    EXPECT_EQ(
        std::ranges::count_if(checks, [](const StoreCheck& c) { return c.harm != Harm::kNone; }),
        1);
    const auto found = std::ranges::max_element(checks, {}, &StoreCheck::harm);
    return found == checks.end() ? StoreCheck{} : *found;
  }
  void ExpectRows(const std::string& sql, const std::string& code, const std::string& message) {
    SCOPED_TRACE(sql);
    Change(sql);
    const StoreCheck found = Found();
    EXPECT_EQ(found.code, code);
    EXPECT_EQ(found.harm, Harm::kRows) << found.message;
    EXPECT_EQ(found.message, message);
    EXPECT_FALSE(found.objects.empty() && code != "JournalNumbers");
    EXPECT_FALSE(found.remedy.empty());
  }
  void ExpectFile(const std::string& sql, const std::string& code) {
    SCOPED_TRACE(sql);
    Change(sql);
    const StoreCheck found = Found();
    EXPECT_EQ(found.code, code);
    EXPECT_EQ(found.harm, Harm::kFile) << found.message;
    EXPECT_FALSE(found.remedy.empty());
  }
};

TEST_F(VerificationTest, FindsNothingInStoreThatIsWritten) {
  Fill();
  const std::vector<StoreCheck> checks = Verify();
  std::vector<std::string> codes;
  for (const StoreCheck& check : checks) {
    codes.push_back(check.code);
    EXPECT_EQ(check.harm, Harm::kNone) << check.message;
  }
  EXPECT_EQ(codes, (std::vector<std::string>{"File", "SchemaVersion", "Pages", "Schema",
                                             "JournalRows", "JournalNumbers", "Clusters", "Events",
                                             "Checkpoints", "Samples"}));
  EXPECT_EQ(VerifyStore(folder_ / "absent.db", {}).status().code(), Code::kNotFound);
}

TEST_F(VerificationTest, NamesDamagedRows) {
  Fill();
  Crash();
  auto db = Sqlite::Open(options_.store.path, Sqlite::Mode::kRead);
  const int64_t rows = db->Number("SELECT count(*) FROM journal").value_or(0);
  const int64_t events = db->Number("SELECT count(*) FROM events").value_or(0);
  const int64_t chunks = db->Number("SELECT count(*) FROM chunks").value_or(0);
  ASSERT_GT(std::min({rows, events, chunks}), 0);
  const std::string of = " of ";
  ExpectRows("UPDATE journal SET body = x'1f8b' WHERE id = (SELECT max(id) FROM journal)",
             "JournalRows",
             "1" + of + std::to_string(rows) + " envelopes of the journal are damaged");
  Change(
      "DELETE FROM journal; DELETE FROM sqlite_sequence WHERE name = 'journal'; INSERT INTO "
      "sqlite_sequence SELECT 'journal', value FROM meta WHERE key = 'flushed'; UPDATE meta SET "
      "value = (SELECT value FROM meta WHERE key = 'flushed') WHERE key = 'applied'");
  ExpectRows("UPDATE events SET body = x'1f8b' WHERE id = 1", "Events",
             "1" + of + std::to_string(events) + " events are damaged");
  Change("DELETE FROM events WHERE id = 1");
  ExpectRows("UPDATE chunks SET body = x'ffff' WHERE id = (SELECT min(id) FROM chunks)", "Samples",
             "1" + of + std::to_string(chunks) + " rows of samples are damaged");
  Change("DELETE FROM chunks WHERE id = (SELECT min(id) FROM chunks)");
  ExpectRows("INSERT INTO checkpoints VALUES (1, 5, 1, x'1f8b00')", "Checkpoints",
             "1 of 1 checkpoints are damaged");
  Change("DELETE FROM checkpoints");
  ExpectRows("INSERT INTO holds VALUES (NULL, 9, 'p', 's', 1, 0)", "Clusters",
             "rows belong to clusters that are not there");
}

TEST_F(VerificationTest, FindsMissingEnvelopes) {
  Fill();
  Crash();
  ExpectRows("DELETE FROM journal WHERE id = (SELECT max(id) - 1 FROM journal)", "JournalNumbers",
             [&] {
               auto db = Sqlite::Open(options_.store.path, Sqlite::Mode::kRead);
               const int64_t flushed =
                   db->Number("SELECT value FROM meta WHERE key = 'flushed'").value_or(0);
               const int64_t last = db->Number("SELECT max(id) FROM journal").value_or(0);
               return "1 of " + std::to_string(last - flushed) + " envelopes after " +
                      std::to_string(flushed) + " are missing";
             }());
}

// The numbers would be given again, and a replay would leave out the new envelopes.
TEST_F(VerificationTest, RefusesJournalThatBeginsAnew) {
  Fill();
  Crash();
  ExpectFile("DELETE FROM journal; DELETE FROM sqlite_sequence WHERE name = 'journal'",
             "JournalNumbers");
}

TEST_F(VerificationTest, FindsMissingPartsOfSchema) {
  Fill();
  Crash();
  ExpectFile("DROP INDEX events_late", "Schema");
}

TEST_F(VerificationTest, RefusesNewerVersionAndOtherFiles) {
  Fill();
  Crash();
  ExpectFile("PRAGMA user_version=3", "SchemaVersion");
  ExpectFile("PRAGMA user_version=0", "File");
}

}  // namespace
}  // namespace nos::telemetryserver
