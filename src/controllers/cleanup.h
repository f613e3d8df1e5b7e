// Removes what nos leaves in a cluster when its programs are gone: placeholders and other objects
// that hold capacity, marks and cordons of nodes, and conditions of nodes.
//
//   const Status cleaned = CleanUp({.namespaces = {"nos-placeholders"}}, client, print);
//
// Layouts (annotations spec-* and status-*) stay, and so do GPU instances: pods may use them.
// Finished steps are skipped, so it can be repeated. REQUIRES: no autoscaler runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kube/client.h"

namespace nos::controllers {

struct CleanUpOptions {
  // Namespaces of placeholders and demand objects. Labels in others are ignored: any user may set
  // them.
  std::vector<std::string> namespaces;
  bool dry_run = false;  // change nothing
};

// Calls `report` for each change, such as "deleted Pod nos/place-r-1-0" or, for a dry run, "would
// delete Pod nos/place-r-1-0". Returns the first error after the rest has been tried.
Status CleanUp(const CleanUpOptions& options, kube::Client& client,
               const std::function<void(const std::string& change)>& report);

}  // namespace nos::controllers
