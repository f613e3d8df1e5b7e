// The parameters that every write and every read takes, checked as k8s.io/apimachinery's
// validation of CreateOptions, PatchOptions, ListOptions... does: a value that the server does not
// know is refused, never passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// What is done about unknown fields and duplicate keys. They are dropped in any case.
enum class FieldValidation { kIgnore, kWarn, kStrict };

struct WriteOptions {
  bool dry_run = false;
  FieldValidation validation = FieldValidation::kWarn;
};

// From the query of a POST, PUT, PATCH or DELETE. Refusal: 422.
Outcome<WriteOptions> ParseWriteOptions(const kube::ApiRequest& request);
// Whether these values of dryRun ask for a dry run. `kind`: "DeleteOptions". Refusal: 422.
Outcome<bool> ParseDryRun(std::string_view kind, const std::vector<std::string>& values);

// resourceVersionMatch and sendInitialEvents of a list or a watch. Refusal: 422.
Check CheckReadOptions(const kube::ApiRequest& request, bool watch);

// `faults`: from FaultsOf. Refusal with kStrict: 400 that names them all. Else what to warn about
// goes to `warnings`.
Check JudgeFaults(const ResourceType& type, FieldValidation validation,
                  std::vector<std::string> faults, std::vector<std::string>& warnings);
// `unknown field "a.b"`, `duplicate field "c"`: as strict decoding words them.
std::vector<std::string> FaultsOf(const std::vector<std::string>& duplicates,
                                  const std::vector<std::string>& unknown);

}  // namespace nos::sim
