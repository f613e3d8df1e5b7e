// Who set which field (metadata.managedFields), and server-side apply, which lives off it.
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

// Notes in `after` what a plain write (create, update, patch) changed against `before` (null when
// created): the manager owns what it set, nobody what it changed or removed before. Entries that
// `after` brings along are taken over as they are, so that clients can repair them.
void RecordUpdate(const Json& before, Json& after, const FieldManager& manager,
                  const MergeRules& rules);

// Server-side apply of `config` on `live` (null when it is to be created): sets what the config
// says, removes what this manager applied before and no longer says, leaves the rest alone.
// Refusal: 409 with one cause a field that another manager set to something else, unless `force`;
// UntypedConfig when a list names an element twice.
Outcome<Json> ApplyConfig(const ResourceType& type, const Json& live, const Json& config,
                          bool force, const FieldManager& manager, const MergeRules& rules);

// A configuration that its kind's schema does not allow. Like the real server's: a 500 without a
// reason.
Refusal UntypedConfig(const ResourceType& type, const Json& config, std::string_view why);

}  // namespace nos::sim
