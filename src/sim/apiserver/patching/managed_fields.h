// Field ownership (metadata.managedFields) and server-side apply, which depends on it.
#pragma once

#include <string>

#include "base/clock.h"
#include "sim/apiserver/patching/field_set.h"

namespace nos::sim {

struct FieldManager {
  std::string name;         // "kubectl-client-side-apply"
  std::string subresource;  // "" or "status"
  std::string api_version;  // of the request
  Time now;                 // recorded with the entry
};

// Updates the managers of `after` for a plain write (create, update, patch) of `before` (null for a
// create): the manager owns the fields that it set; other managers lose the fields that it changed
// or removed. Entries that `after` already contains are kept as they are, so that clients can
// repair them.
void RecordUpdate(const Json& before, Json& after, const FieldManager& manager,
                  const MergeRules& rules);

// Server-side apply of `config` to `live` (null for a create): sets the fields of the config,
// removes fields that this manager applied before and that the config omits, and leaves others
// unchanged. Refusal: 409, with one cause for each field that another manager set to another value,
// unless `force`; UntypedConfig if a list repeats an element.
Outcome<Json> ApplyConfig(const ResourceType& type, const Json& live, const Json& config,
                          bool force, const FieldManager& manager, const MergeRules& rules);

// The refusal of a configuration that does not match the schema of its kind. Like the real server:
// a 500 without a reason.
Refusal UntypedConfig(const ResourceType& type, const Json& config, std::string_view why);

}  // namespace nos::sim
