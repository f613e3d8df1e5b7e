// Ends an evaluation at once, past the operators that absorb errors. Thrown inside the library and
// caught by Program, which turns it into an error text.
#pragma once

#include <stdexcept>

namespace nos::cel {

struct Cancelled : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace nos::cel
