// Ends an evaluation at once, past the operators that absorb errors. Thrown inside the library and
// caught by Program, which turns it into a failure.
#pragma once

#include <stdexcept>
#include <string>

namespace nos::cel {

class Cancelled : public std::runtime_error {
 public:
  enum class Cause {
    kLimit,        // cost, memory or steps
    kInterrupted,  // by the caller
    kInternal,     // upstream panics here
  };
  Cancelled(Cause cause, const std::string& text) : std::runtime_error(text), cause_(cause) {}
  Cause cause() const { return cause_; }

 private:
  Cause cause_;
};

}  // namespace nos::cel
