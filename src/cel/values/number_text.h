// Numbers as Go prints them.
#pragma once

#include <string>

namespace nos::cel {

// %g: "1.5", "1e+06", "NaN", "+Inf".
std::string FormatGeneral(double value);
// 'f' with as many digits as needed: "1.5", "1000000".
std::string FormatPlain(double value);

}  // namespace nos::cel
