// A JSON file shared by several processes and tests: locked while it is read or changed, and
// replaced atomically, so that readers never see half of it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/status.h"
#include "codec/json.h"

namespace nos::nvml_double {

// Each process with a session holds a shared lock (flock) on this file, i.e. keeps the GPUs open.
std::string SessionsPath(const std::string& state_path);

// Waits until `done` returns true, which it asks at once and whenever the file is replaced. False:
// the time is up.
bool WaitForFile(const std::string& path, std::chrono::milliseconds timeout,
                 const std::function<bool()>& done);

// Holds the lock (flock on "<path>.lock") during its lifetime.
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
