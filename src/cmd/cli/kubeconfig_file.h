// A kubeconfig that exists as long as its sandbox, locked against use by a second sandbox.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace nos::cmd {

class KubeconfigFile {
 public:
  // Creates the file, or takes over one that an ended sandbox left behind. kubectl sends requests
  // to the server named in the file, so no other user may be able to change it. Error: kInvalid for
  // a symbolic link, a file that is not regular, a file that another user owns or can write, a file
  // that no sandbox wrote, and the file of a running sandbox.
  static Result<std::unique_ptr<KubeconfigFile>> Write(const std::string& path, uint16_t port);
  // Removes the file.
  ~KubeconfigFile();
  KubeconfigFile(const KubeconfigFile&) = delete;
  KubeconfigFile& operator=(const KubeconfigFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  KubeconfigFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status Take();

  const std::string path_;
  const int fd_;
  bool ours_ = false;
};

}  // namespace nos::cmd
