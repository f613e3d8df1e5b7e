// Arbitrary telemetry envelopes: refused completely or record by record, or folded into a state
// that can be written as JSON and rebuilt from its own records.
#include "codec/json.h"
#include "target.h"
#include "telemetry/envelope.h"
#include "telemetryserver/derived.h"
#include "telemetryserver/views.h"

using namespace nos;                   // NOLINT
using namespace nos::telemetry;        // NOLINT
using namespace nos::telemetryserver;  // NOLINT

namespace {

constexpr Millis kNow = 1'763'760'000'000;

void CheckTold(const State& state) {
  const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
  const Scope all({"root", true, {}}, "");
  const Scope some({"kim", false, {"a"}}, "");
  for (const Scope* scope : {&all, &some}) {
    Require(ParseJson(GpusJson(state, *scope, kNow, nullptr)).ok(), "GPUs are JSON");
    Require(ParseJson(PodsJson(state, *scope, {}, kNow)).ok(), "pods are JSON");
    Require(ParseJson(QuotasJson(state, *scope)).ok(), "quotas are JSON");
  }
  Require(ParseJson(OverviewJson(state, catalogue, kNow, 30'000)).ok(), "the overview is JSON");
  Require(ReadDerivedEnvelope(DerivedEnvelope("c", state, catalogue, kNow, 30'000)).ok(),
          "what is derived can be read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto envelope = ReadEnvelope(FuzzText(data, size), kNow);
  if (!envelope.ok()) {
    Require(envelope.status().code() == Code::kInvalid, "refused as invalid");
    return 0;
  }
  State state;
  for (const Record& record : envelope->records) {
    const State::Effects effects = state.Apply(record, envelope->source);
    for (const State::Change& change : effects.changes) {
      Require(ParseJson(WriteJson(change.body)).ok(), "changes are JSON");
    }
  }
  CheckTold(state);
  State again;
  for (Json& body : state.Records()) {
    const auto record = ReadRecord(std::move(body));
    Require(record.ok(), "a state's records can be read");
    again.Apply(*record, "");
  }
  Require(again.Records() == state.Records(), "and make it again");
  return 0;
}
