#include "sim/apiserver/storage/request_options.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {
namespace {

std::string_view OptionsKind(std::string_view method) {
  if (method == "POST") return "CreateOptions";
  if (method == "PUT") return "UpdateOptions";
  return method == "PATCH" ? "PatchOptions" : "DeleteOptions";
}

Refusal InvalidOptions(std::string_view kind, Causes& causes) {
  ResourceType options;
  options.group = "meta.k8s.io";
  options.kind = kind;
  return ObjectInvalid(options, "", causes.Take());
}

std::vector<std::string> ValuesOf(const kube::ApiRequest& request, std::string_view key) {
  std::vector<std::string> values;
  for (const auto& [name, value] : request.query) {
    if (name == key) values.push_back(value);
  }
  return values;
}

}  // namespace

Outcome<bool> ParseDryRun(std::string_view kind, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (value == "All") continue;
    Causes causes;
    causes.Unsupported("dryRun", value, "\"All\"");
    return InvalidOptions(kind, causes);
  }
  return !values.empty();
}

Outcome<WriteOptions> ParseWriteOptions(const kube::ApiRequest& request) {
  WriteOptions options;
  const std::string_view kind = OptionsKind(request.method);
  NOS_ASSIGN(options.dry_run, ParseDryRun(kind, ValuesOf(request, "dryRun")));
  const std::string validation = request.Query("fieldValidation");
  if (validation == "Ignore") {
    options.validation = FieldValidation::kIgnore;
  } else if (validation == "Strict") {
    options.validation = FieldValidation::kStrict;
  } else if (!validation.empty() && validation != "Warn") {
    Causes causes;
    causes.Unsupported("fieldValidation", validation, R"("Ignore", "Strict", "Warn")");
    return InvalidOptions(kind, causes);
  }
  return options;
}

Check CheckReadOptions(const kube::ApiRequest& request, bool watch) {
  constexpr char kMatch[] = "resourceVersionMatch";
  const std::string match = request.Query(kMatch);
  const std::string version = request.Query("resourceVersion");
  const bool initial = !request.Query("sendInitialEvents").empty();
  Causes causes;
  if (initial && !watch) causes.Forbidden("sendInitialEvents", "it is for watches only");
  if (initial && watch && match != "NotOlderThan") {
    causes.Forbidden(kMatch,
                     "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  }
  if (!match.empty()) {
    if (match != "Exact" && match != "NotOlderThan") {
      causes.Unsupported(kMatch, match, R"("Exact", "NotOlderThan")");
    }
    if (watch && !initial) {
      causes.Forbidden(kMatch, "it is forbidden for watch unless sendInitialEvents is provided");
    }
    if (!watch && version.empty()) {
      causes.Forbidden(kMatch, "it is forbidden unless resourceVersion is provided");
    }
    if (!request.Query("continue").empty()) {
      causes.Forbidden(kMatch, "it is forbidden when continue is provided");
    }
    if (match == "Exact" && version == "0") {
      causes.Forbidden(kMatch, "\"Exact\" is forbidden for resourceVersion \"0\"");
    }
  }
  if (causes.empty()) return std::nullopt;
  return InvalidOptions("ListOptions", causes);
}

std::vector<std::string> FaultsOf(const std::vector<std::string>& duplicates,
                                  const std::vector<std::string>& unknown) {
  std::vector<std::string> faults;
  faults.reserve(duplicates.size() + unknown.size());
  for (const std::string& path : duplicates) {
    faults.push_back(fmt::format("duplicate field \"{}\"", path));
  }
  for (const std::string& path : unknown) {
    faults.push_back(fmt::format("unknown field \"{}\"", path));
  }
  return faults;
}

Check CheckFaults(const ResourceType& type, FieldValidation validation,
                  std::vector<std::string> faults, std::vector<std::string>& warnings) {
  if (faults.empty() || validation == FieldValidation::kIgnore) return std::nullopt;
  if (validation == FieldValidation::kWarn) {
    warnings = std::move(faults);
    return std::nullopt;
  }
  return BadRequest(
      fmt::format("{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                  type.kind, type.version, type.kind, Join(faults, ", ")));
}

}  // namespace nos::sim
