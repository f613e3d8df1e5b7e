// The folder of a spool, as the spool uses it: files by name, and what of them survives a loss of
// power. Tests replace it by one that fails.
//
//   NOS_ASSIGN(auto folder, OpenSpoolFolder("/var/lib/nos/telemetry"));
//   NOS_RETURN_IF_ERROR(folder->Write("unfinished", bytes));      // the content is on disk
//   NOS_RETURN_IF_ERROR(folder->Rename("unfinished", "1-7.gz"));
//   NOS_RETURN_IF_ERROR(folder->Sync());                          // and now the name
//
// Errors, with the path: kExhausted (disk full), kPermission, kNotFound, kUnavailable (others).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos::telemetry {

class SpoolFolder {
 public:
  struct Listed {
    std::string name;
    uint64_t bytes = 0;
  };

  virtual ~SpoolFolder() = default;
  // Creates or replaces a file, and syncs its content. After an error any part of it may be there.
  virtual Status Write(const std::string& name, std::string_view content) = 0;
  // Replaces `to`. `to` may be in a sub-folder that exists.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual void Remove(const std::string& name) = 0;
  // Names that were written, renamed and removed until now survive a loss of power.
  virtual Status Sync() = 0;
  virtual Result<std::string> Read(const std::string& name, size_t most) = 0;
  virtual Result<std::vector<Listed>> List() = 0;
};

// Creates the folder and its `sub_folder`. kUnavailable also if another process uses it.
Result<std::unique_ptr<SpoolFolder>> OpenSpoolFolder(const std::string& path,
                                                     const std::string& sub_folder);

}  // namespace nos::telemetry
