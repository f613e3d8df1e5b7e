// Kubernetes' binary encoding: refused, or converted to JSON that survives a round trip.
#include "codec/json.h"
#include "sim/protobuf.h"
#include "target.h"

using namespace nos;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes("k8s\0", 4);
  bytes += FuzzText(data, size);
  const Result<Json> json = sim::DecodeProtobuf(bytes);
  if (!json.ok()) {
    Require(json.status().code() == Code::kInvalid, "refused as invalid");
    return 0;
  }
  Require(ParseJson(WriteJson(*json)).ok(), "what is decoded can be written");
  return 0;
}
