// A JSON file that several processes and tests share: locked while it is read or changed, replaced
// in one step, so that whoever only reads never sees half of it.
#pragma once

#include <string>

#include "base/status.h"
#include "codec/json.h"

namespace nos::nvml_double {

// Processes with a session share a lock (flock) on this file: so long they have the GPUs open.
std::string SessionsPath(const std::string& state_path);

// Holds the lock (flock on "<path>.lock") while it lives.
class StateFile {
 public:
  explicit StateFile(std::string path);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  Result<Json> Read() const;
  Status Write(const Json& state) const;

 private:
  std::string path_;
  int lock_;
};

}  // namespace nos::nvml_double
