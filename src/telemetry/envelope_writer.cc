#include "telemetry/envelope_writer.h"

#include <chrono>

#include "codec/json.h"

namespace nos::telemetry {

int64_t ToMilliseconds(Time time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::string WriteEnvelope(const EnvelopeHead& head, std::string_view records) {
  std::string text = WriteJson(JsonObject{{"schema", kEnvelopeSchema},
                                          {"cluster", head.cluster},
                                          {"source", head.source},
                                          {"boot", head.boot},
                                          {"sequence", head.sequence},
                                          {"sent_at", ToMilliseconds(head.sent_at)},
                                          {"lost", head.lost}});
  text.pop_back();
  text += ",\"records\":[";
  text += records;
  text += "]}";
  return text;
}

}  // namespace nos::telemetry
