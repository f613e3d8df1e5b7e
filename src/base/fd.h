// File descriptors that close themselves, and an eventfd that wakes a polling thread.
#pragma once

#include <string>
#include <utility>

namespace nos {

// Owns a file descriptor; -1 if it owns none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Wakes a thread that polls fd().
class WakeUp {
 public:
  WakeUp();
  int fd() const { return fd_.get(); }
  void Signal() const;
  // Resets all signals sent so far.
  void Clear() const;

 private:
  UniqueFd fd_;
};

}  // namespace nos
