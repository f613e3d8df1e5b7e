// Rows of the telemetry server's database, as a damaged disk may return them: the first byte
// chooses the table. Each is refused, or read as far as it is whole, and the result can be stored
// again.
#include <algorithm>
#include <cmath>

#include "codec/gzip.h"
#include "codec/json.h"
#include "target.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/store/archive.h"
#include "telemetryserver/store/archive_lease.h"
#include "telemetryserver/store/journal_table.h"

using namespace nos;                   // NOLINT
using namespace nos::telemetryserver;  // NOLINT

namespace {

constexpr telemetry::Millis kNow = 1'763'760'000'000;

std::string CheckpointOf(const State& state) {
  JsonArray records;
  for (Json& record : state.Records()) records.push_back(std::move(record));
  records.push_back(state.gone().ToJson(state.now()));
  records.push_back(state.durations().ToJson(state.now()));
  return Gzip(WriteJson(records), 1);
}

// `body`: an envelope, gzip.
void TryJournal(std::string_view body, bool derived) {
  const auto envelope = ReadJournaled(body, derived, kNow);
  if (!envelope.ok()) return;
  for (const telemetry::Record& record : envelope->records) {
    Require(record.body.is_object(), "a record is an object");
    Require(derived || record.at <= kNow, "no record is later than its arrival");
  }
}

void TryCheckpoint(std::string_view body) {
  State state;
  if (!ApplyCheckpoint(state, body).ok()) return;
  State again;
  const auto damaged = ApplyCheckpoint(again, CheckpointOf(state));
  Require(damaged.ok() && *damaged == 0, "a state's own checkpoint is whole");
  Require(again.Records() == state.Records(), "and makes the same state");
}

void TryEvent(std::string_view body) {
  Result<Json> read = ReadEventBody(body);
  if (!read.ok()) return;
  State state;
  if (state.Restore(*read)) return;
  const auto record = telemetry::ReadRecord(*std::move(read));
  if (!record.ok()) return;
  state.Apply(*record, "");
  state.NotAfter(kNow);
  TryCheckpoint(CheckpointOf(state));
}

void TrySamples(std::string_view body, size_t level) {
  const auto row = DecodeRow(body, level);
  if (row.ok()) Require(DecodeRow(EncodeRow(row->metrics, row->block), level).ok(), "stored again");
  std::vector<Bucket> buckets;
  const int64_t metric = row.ok() && !row->metrics.empty() ? row->metrics.front() : 1;
  (void)AppendBuckets(body, level, metric, 0, kNow, buckets);
  for (const Bucket& bucket : buckets) Require(bucket.at >= 0 && bucket.at < kNow, "in the range");
  for (size_t above = std::max<size_t>(1, level); above < kLevels.size(); ++above) {
    WindowSums sums(kLevels.at(above), 0);
    (void)sums.Add(body, level);
    (void)sums.Merge(body, level);
    const std::string rolled = sums.Encode();
    Require(rolled.empty() || DecodeRow(rolled, above).ok(), "a rollup can be read");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body = FuzzText(data + 1, size - 1);
  switch (data[0] % 9) {
    case 0:
      TryJournal(body, false);
      break;
    case 1:
      TryJournal(Gzip(body, 1), false);
      break;
    case 2:
      TryJournal(Gzip(body, 1), true);
      break;
    case 3:
      TryEvent(body);
      break;
    case 4:
      TryCheckpoint(body);
      break;
    case 5:
      TryCheckpoint(Gzip(body, 1));
      break;
    default:
      TrySamples(body, data[0] % 9 - 6);
  }
  return 0;
}
