// Decodes Kubernetes' protobuf encoding. Clients built on client-go 1.32 and later send it by
// default for built-in types (`kubectl create namespace` does), and accept JSON in answers.
#pragma once

#include <string_view>

#include "codec/json.h"

namespace nos::sim {

// "application/vnd.kubernetes.protobuf": four bytes of magic, then an envelope with the kind and
// the object. Empty strings and zero times are omitted, as in JSON. Error: kInvalid for malformed
// bytes and for kinds that are not in the schema.
Result<Json> DecodeProtobuf(std::string_view bytes);

}  // namespace nos::sim
