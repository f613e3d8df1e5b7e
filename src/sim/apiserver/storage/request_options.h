// The parameters that all writes and reads accept, checked like k8s.io/apimachinery's validation of
// CreateOptions, PatchOptions, ListOptions...: an unknown value is refused, never ignored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// The reaction to unknown fields and duplicate keys. They are dropped in any case.
enum class FieldValidation { kIgnore, kWarn, kStrict };

struct WriteOptions {
  bool dry_run = false;
  FieldValidation validation = FieldValidation::kWarn;
};

// From the query of a POST, PUT, PATCH or DELETE. Refusal: 422.
Outcome<WriteOptions> ParseWriteOptions(const kube::ApiRequest& request);
// True if these values of dryRun request a dry run. `kind`: "DeleteOptions". Refusal: 422.
Outcome<bool> ParseDryRun(std::string_view kind, const std::vector<std::string>& values);

// resourceVersionMatch and sendInitialEvents of a list or a watch. Refusal: 422.
Check CheckReadOptions(const kube::ApiRequest& request, bool watch);

// `faults`: from FaultsOf. Refusal with kStrict: 400 that lists all faults. Otherwise appends the
// warnings to `warnings`.
Check CheckFaults(const ResourceType& type, FieldValidation validation,
                  std::vector<std::string> faults, std::vector<std::string>& warnings);
// `unknown field "a.b"`, `duplicate field "c"`: the wording of strict decoding.
std::vector<std::string> FaultsOf(const std::vector<std::string>& duplicates,
                                  const std::vector<std::string>& unknown);

}  // namespace nos::sim
