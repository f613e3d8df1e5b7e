// Explains where a pod that is not submitted yet would be placed, limited to what the reader may
// know. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cluster/objects.h"
#include "codec/json.h"

namespace nos::scheduling {
struct Explanation;
}

namespace nos::cmd {

// A pod written by a user: one document of YAML or JSON, without fields that only the API server
// sets (status, uid...). The namespace is set ("default" if missing), and a name or generateName.
// Errors: kInvalid: not a pod, several documents, an invalid name.
struct WrittenPod {
  Json object;
  std::string ns, name;  // name is "" if the API server generates it
  std::string Key() const { return ns + "/" + name; }
  // Its name, or an example of a generated name.
  std::string NameOrSo() const;
};
Result<WrittenPod> ReadWrittenPod(std::string_view text);

// The explanation for a reader who may see pods in namespaces for which `may` is true; `own`: the
// pod's namespace, which is one of them. Pods of other namespaces are not named.
scheduling::Explanation ForReader(scheduling::Explanation why, const std::string& own,
                                  const std::function<bool(std::string_view ns)>& may);

// {"fits", "node", "would_partition", "would_evict", "text", "steps", "explanation": as ToJson of
// scheduling/summary.h}, and until the next minor
// version "would_cut", equal to "would_partition". `note`: an additional step; "": none.
std::string WhatIfJson(const scheduling::Explanation& why, std::string_view note);

}  // namespace nos::cmd
