// Reads a Snapshot from an API server. Writes nothing: access reviews are questions.
#pragma once

#include <string>

#include "cmd/clustercheck/snapshot.h"
#include "kube/transport.h"

namespace nos::cmd {

// `ns`: namespace of nos; "": every one. Errors are kept in the Snapshot, part by part; the result
// is an error only if the API server does not answer at all.
Result<Snapshot> ReadSnapshot(kube::Transport& transport, const std::string& ns, Time now);

}  // namespace nos::cmd
