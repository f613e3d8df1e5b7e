// What would become of a pod that somebody has not submitted yet, as far as they may know it.
// Pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cluster/objects.h"
#include "codec/json.h"
#include "scheduling/explain.h"

namespace nos::cmd {

// A pod as somebody wrote it: one document of YAML or JSON, without what only the API server says
// (status, uid...). Its namespace is set ("default"), and a name, or the begin of one.
// Errors: kInvalid: no pod, several, a name that cannot be one.
struct WrittenPod {
  Json object;
  std::string ns, name;  // "" where the API server makes the name up
  std::string Key() const { return ns + "/" + name; }
  // Its name, or one that it could get.
  std::string NameOrSo() const;
};
Result<WrittenPod> ReadWrittenPod(std::string_view text);

// As for somebody who may know of pods of namespaces for which `may` is true; `own`: the pod's
// namespace, which is one of them. Others' pods are not named.
scheduling::Explanation ForReader(scheduling::Explanation why, const std::string& own,
                                  const std::function<bool(std::string_view ns)>& may);

// {"fits", "node", "would_cut", "would_evict", "text", "steps"}. `note`: a further step; "": none.
std::string WhatIfJson(const scheduling::Explanation& why, std::string_view note);

}  // namespace nos::cmd
