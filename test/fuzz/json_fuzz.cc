// ParseJson: accepted input can be written, and the written text is accepted with the same value.
#include "codec/json.h"
#include "target.h"

using namespace nos;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<Json> json = ParseJson(FuzzText(data, size));
  if (!json.ok()) {
    Require(json.status().code() == Code::kInvalid, "refused as invalid");
    return 0;
  }
  const std::string text = WriteJson(*json);
  const Result<Json> again = ParseJson(text);
  Require(again.ok(), "written JSON is read");
  const Result<Json> pretty = ParseJson(WriteJsonPretty(*json));
  Require(pretty.ok() && WriteJson(*pretty) == WriteJson(*again), "pretty JSON is the same");
  return 0;
}
