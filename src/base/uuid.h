// UUIDs that follow from a name, for simulated and doubled hardware.
#pragma once

#include <string>
#include <string_view>

namespace nos {

// The same name gives the same UUID, with the look of a name-based one (version 5, RFC 9562).
std::string NameBasedUuid(std::string_view name);

}  // namespace nos
