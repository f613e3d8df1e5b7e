// ParseYaml: refused input is named by its place; accepted input takes memory in proportion to its
// text, and is the same after it is written as JSON, which is YAML too.
#include "codec/json.h"
#include "codec/yaml.h"
#include "target.h"

using namespace nos;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = FuzzText(data, size);
  const auto documents = ParseYaml(text);
  if (!documents.ok()) {
    Require(documents.status().code() == Code::kInvalid, "refused as invalid");
    Require(documents.status().message().starts_with("YAML document "), "says where");
    return 0;
  }
  size_t written = 0;
  for (const Json& document : *documents) {
    const std::string json = WriteJson(document);
    written += json.size();
    const Result<Json> again = ParseJson(json);
    Require(again.ok() && (HasTinyNumbers(text) || WriteJson(*again) == json),
            "written JSON is read and means the same");
  }
  // An escaped character takes at most 6 times its own size. A value of 2 bytes may be written as
  // "null", and a copy takes more memory than its text.
  Require(written <= 6 * ((size_t{1} << 20) + 16 * size), "aliases expand within the limit");
  return 0;
}
