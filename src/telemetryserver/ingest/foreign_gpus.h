// Refuses the records of a node's agent about GPUs of other nodes: an intruder on one node
// would otherwise write the history of all GPUs, whose UUIDs every node may learn.
//
//   for (const telemetry::Refused& one : TakeForeign(live, now, envelope)) ...
//
// A GPU, and each of its instances, belongs to the node that reported it first, until this node
// reports without it, is removed, or has been silent for a day. A GPU that moves to another
// machine is therefore refused there until its former node reports without it.
#pragma once

#include <vector>

#include "telemetry/envelope.h"
#include "telemetryserver/ingest/live.h"

namespace nos::telemetryserver {

// Removes those records from the envelope, and none if its source is not a node.
std::vector<telemetry::Refused> TakeForeign(const Live& live, telemetry::Millis now,
                                            telemetry::Envelope& envelope);

}  // namespace nos::telemetryserver
