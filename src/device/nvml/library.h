// The driver's NVML library, loaded at run time, and a session with the driver.
//
//   NOS_ASSIGN(std::unique_ptr<NvmlLibrary> library, NvmlLibrary::Open());
//   NvmlSession session(*library);
//   NOS_RETURN_IF_ERROR(session.Open());
//   unsigned count = 0;
//   library->call().nvmlDeviceGetCount_v2(&count);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/nvml_abi.h"

namespace nos::device {

// Immutable; thread-safe.
class NvmlLibrary {
 public:
  // Loads `path`; if empty, the file named by $NOS_NVML_LIBRARY, else libnvidia-ml.so.1 from the
  // dynamic linker's search path. Errors: kUnavailable (cannot be loaded), kUnimplemented (a
  // required function is missing: the driver is too old).
  static Result<std::unique_ptr<NvmlLibrary>> Open(std::string path = "");
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  const nvml::Functions& call() const { return functions_; }
  const std::string& path() const { return path_; }
  // True if the library has all functions of the feature.
  bool Has(nvml::Feature feature) const;
  // One sentence for each feature that this library lacks.
  std::vector<std::string> Limits() const;

 private:
  NvmlLibrary(std::string path, void* handle);
  std::vector<std::string> MissingOf(nvml::Feature feature) const;

  struct Missing {
    nvml::Feature feature;
    std::string function;
  };
  std::string path_;
  void* handle_;
  nvml::Functions functions_;
  std::vector<Missing> missing_;
};

// Keeps NVML initialised while open. NVML counts initialisations, so sessions are independent.
// Not thread-safe.
class NvmlSession {
 public:
  // `library` must outlive this.
  explicit NvmlSession(const NvmlLibrary& library) : library_(library) {}
  ~NvmlSession() { Close(); }
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  // No effect if it is open. Error: kUnavailable if the driver does not answer; `code` is then its
  // answer.
  Status Open(nvml::Return* code = nullptr);
  void Close();
  bool is_open() const { return open_; }

 private:
  const NvmlLibrary& library_;
  bool open_ = false;
};

}  // namespace nos::device
