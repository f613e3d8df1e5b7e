// The order in which a node's MIG devices were created, given to pods, and destroyed. The doubles
// of NVML and of the node append a line for each to one file, if the test has created it:
//
//   created MIG-<uuid>    destroyed MIG-<uuid>    held ID NAMESPACE/POD    freed ID NAMESPACE/POD
//
// A pod holds a device from the plugin's answer until the kubelet forgets the pod. A device that is
// destroyed while it is held was taken from a pod, however short that was.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace nos::doubles {

// One write for each line, so that lines of several processes do not mix.
inline void AppendToJournal(const std::string& path, const std::string& line) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  const std::string text = line + "\n";
  const ssize_t written = write(file, text.data(), text.size());
  (void)written;
  close(file);
}

}  // namespace nos::doubles
