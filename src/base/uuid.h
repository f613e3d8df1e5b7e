// UUIDs derived from a name, for simulated and fake hardware.
#pragma once

#include <string>
#include <string_view>

namespace nos {

// The same name gives the same UUID, in the format of a name-based UUID (version 5, RFC 9562).
std::string NameBasedUuid(std::string_view name);

}  // namespace nos
