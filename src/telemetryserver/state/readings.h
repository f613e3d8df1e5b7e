// Latest measurements of GPUs and instances, and the nodes that have them.
//
//   readings.Move(node, before, after);               // a new layout of the node
//   const std::string* node = readings.Add(at, record);  // "gpu/GPU-1"; null: in no layout yet
//   const Latest* latest = readings.Of("gpu", "GPU-1");
//
// Pure: no input or output. Bounded: subjects beyond those in layouts are limited. Measurements of
// an instance end with the instance; those of a GPU stay until Remove. Internal to this library.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "telemetryserver/state/objects.h"

namespace nos::telemetryserver {

std::string SubjectOf(const telemetry::Gpu& gpu);
std::string SubjectOf(const telemetry::Instance& instance);

class ReadingTable {
 public:
  // Ignores measurements older than the latest. Returns the node that has the subject; null: none
  // is known, or it was ignored.
  const std::string* Add(telemetry::Millis at, const telemetry::Readings& readings);
  void Move(const std::string& node, const telemetry::Layout& before,
            const telemetry::Layout& after);
  void Remove(const std::string& subject) { latest_.erase(subject); }
  // The node whose layout has the subject; null: none.
  const std::string* NodeOf(const std::string& subject) const;
  // Limits all times to `now`, after the clock was ahead.
  void NotAfter(telemetry::Millis now);
  // `kind`: "gpu" or "instance". Null: no reading received.
  const Latest* Of(std::string_view kind, const std::string& uuid) const;

 private:
  // True if the node had the subject.
  bool Leave(const std::string& node, const std::string& subject);

  std::unordered_map<std::string, Latest> latest_;        // by subject
  std::unordered_map<std::string, std::string> node_of_;  // by subject
};

}  // namespace nos::telemetryserver
