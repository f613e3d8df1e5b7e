// Objects of one kind that are kept as reported: quotas, jobs, queues or pools of one cluster.
//
//   ThingTable quotas("quota", gone);
//   if (quotas.Apply(record, "ElasticQuota/team-a/quota", effects)) ...  // it changed
//
// Pure: no input or output. Bounded: new objects beyond the limit are ignored. Internal to this
// library.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "telemetryserver/state/objects.h"
#include "telemetryserver/state/tombstones.h"

namespace nos::telemetryserver {

class ThingTable {
 public:
  // `kind`: of the records, a literal. `gone` must outlive this object.
  ThingTable(std::string_view kind, Tombstones& gone) : kind_(kind), gone_(gone) {}

  // True if the object changed.
  bool Apply(const telemetry::Record& record, const std::string& key, Effects& effects);
  // False: the object was reported later, and stays.
  bool Remove(telemetry::Millis at, const std::string& key, Effects& effects);
  // Known objects, reported last at `at` or earlier, that are missing in the list.
  std::vector<std::string> Unlisted(const std::set<std::string>& listed,
                                    telemetry::Millis at) const;
  // Earlier records are confirmed unchanged by a full list.
  void Confirm(telemetry::Millis listed);
  // Limits all times to `now`, after the clock was ahead.
  void NotAfter(telemetry::Millis now);

  std::string_view kind() const { return kind_; }
  const std::map<std::string, Thing>& all() const { return things_; }

 private:
  const std::string_view kind_;
  Tombstones& gone_;
  std::map<std::string, Thing> things_;
};

}  // namespace nos::telemetryserver
