// A decision's record as a value. Internal to this library.
#pragma once

#include <string>
#include <vector>

#include "telemetryserver/stories.h"

namespace nos::telemetryserver {

struct Decision {
  std::string id, type, state;
  std::string summary, why;  // of the reporter; printable
  std::string node;          // of an eviction or of scaling; "": none
  telemetry::Millis at = 0, made = 0;
  int64_t took_ms = -1;
  std::vector<StoryPod> pods, victims;
  bool hidden_pods = false, hidden_victims = false;
  std::vector<std::string> nodes;  // repartitioned ones, then `node`
  SliceCounts created, destroyed;
  std::vector<std::string> switches;  // "GPU 0 of n-1 changed from MIG to time slices"

  // A decision that takes devices from pods.
  bool Evicts() const { return !victims.empty() || hidden_victims; }
};

Decision ReadDecision(const Json& record);

// A later decision about a node ends an earlier one that is still planned: a plan is superseded,
// and a node that was being drained is removed or kept.
void Settle(std::vector<Decision>& decisions);

}  // namespace nos::telemetryserver
