#include "telemetry/envelope_writer.h"

#include "base/millis.h"
#include "codec/json.h"

namespace nos::telemetry {

std::string WriteEnvelope(const EnvelopeHead& head, std::string_view records) {
  std::string text = WriteJson(JsonObject{{"schema", kEnvelopeSchema},
                                          {"cluster", head.cluster},
                                          {"source", head.source},
                                          {"boot", head.boot},
                                          {"sequence", head.sequence},
                                          {"sent_at", ToMillis(head.sent_at)},
                                          {"lost", head.lost}});
  text.pop_back();
  text += ",\"records\":[";
  text += records;
  text += "]}";
  return text;
}

}  // namespace nos::telemetry
