// Questions about a relocation that need its state in memory (RelocationMemory).
//
//   if (IsLeft(place, memory, now)) ...   // its pod is still to be evicted
#pragma once

#include <map>
#include <string>

#include "controllers/relocation/scene.h"
#include "controllers/relocations.h"

namespace nos::controllers {

using RelocationMemories = std::map<std::string, RelocationMemory>;  // by id

// Time after which the caches show an earlier write.
inline constexpr Duration kSettle = std::chrono::seconds(10);

// The pod was evicted and the caches may not show it yet.
bool IsLetGo(const Place& place, const RelocationMemories& memory, Time now);
// Neither evicted nor ended.
bool IsLeft(const Place& place, const RelocationMemories& memory, Time now);

}  // namespace nos::controllers
