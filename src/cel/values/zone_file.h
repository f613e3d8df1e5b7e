// Time zones of the IANA database, from the files of the system (TZif, RFC 8536).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nos::cel {

// Seconds east of UTC at a time; none if the zone is unknown or the system has no database.
std::optional<int64_t> ZoneFileOffset(std::string_view zone, int64_t seconds);

}  // namespace nos::cel
