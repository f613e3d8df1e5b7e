// A kubeconfig that exists as long as the sandbox does, locked so that no second sandbox takes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace nos::cmd {

class KubeconfigFile {
 public:
  // Makes the file, or takes over one that an earlier sandbox left. Whoever uses it talks to the
  // server it names, so nobody else may have a hand in it: error (kInvalid) for a link, for what is
  // no plain file, for a file of another user or one that others may write, for one that is no
  // sandbox's, and for one whose sandbox still runs.
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
