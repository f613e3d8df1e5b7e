// Limits how many GPUs and instances a node reports for the first time within a day, so that an
// intruder on one node fills neither this server's memory nor the table of subjects with invented
// ones. Of one cluster.
//
//   NodeSubjects subjects;
//   if (!subjects.Admit("gpu-17", "instance/MIG-...", now)) refuse the record;
//
// Used by one thread.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "telemetry/records.h"

namespace nos::telemetryserver {

class NodeSubjects {
 public:
  // 16 GPUs whose seven instances are all created anew 35 times.
  static constexpr size_t kMaxSubjects = 4000;

  // `subject`: one that is in no layout of the node yet. False: the node has reported kMaxSubjects
  // others within the day.
  bool Admit(const std::string& node, const std::string& subject, telemetry::Millis now);

 private:
  struct Day {
    telemetry::Millis began = 0;
    std::set<std::string> subjects;
  };

  std::map<std::string, Day> days_;  // by node
  telemetry::Millis cleaned_ = 0;
};

}  // namespace nos::telemetryserver
