#include "base/fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace nos {

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

WakeUp::WakeUp() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void WakeUp::Signal() const {
  const uint64_t one = 1;
  // Fails only if the counter is full; the fd is readable then anyway.
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof one);
}

void WakeUp::Clear() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = read(fd_.get(), &count, sizeof count);
}

}  // namespace nos
