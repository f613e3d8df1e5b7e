// Refuses records by which an intruder on one node would write about GPUs of other nodes, whose
// UUIDs every node may learn, or about countless invented ones.
//
//   for (const telemetry::Refused& one : TakeRefused(live, now, envelope)) ...
//
// A GPU, and each of its instances, belongs to the node that reported it first, until this node
// reports without it, is removed, or has been silent for a day. A GPU that moves to another
// machine is therefore refused there until its former node reports without it.
#pragma once

#include <vector>

#include "telemetry/envelope.h"
#include "telemetryserver/ingest/live.h"

namespace nos::telemetryserver {

// Removes those records from the envelope, and none if its source is not a node. Returns the first
// 100. `live`: null: the cluster is new.
std::vector<telemetry::Refused> TakeRefused(Live* live, telemetry::Millis now,
                                            telemetry::Envelope& envelope);

}  // namespace nos::telemetryserver
