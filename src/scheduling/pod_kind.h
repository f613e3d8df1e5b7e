// Pods that plugins cannot tell apart.
#pragma once

#include <string>

#include "cluster/objects.h"

namespace nos::scheduling {

// Everything of the pod that any plugin reads; pods of equal text get the same verdicts and scores
// from every node. Priority is not in it, for it decides only who goes first.
std::string KindOf(const cluster::Pod& pod);

}  // namespace nos::scheduling
