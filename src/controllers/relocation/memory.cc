#include "controllers/relocation/memory.h"

namespace nos::controllers {

bool IsLetGo(const Place& place, const RelocationMemories& memory, Time now) {
  const auto found = memory.find(place.what.id);
  if (found == memory.end()) return false;
  const auto eviction = found->second.evictions.find(place.what.uid);
  return eviction != found->second.evictions.end() && eviction->second.let_go &&
         now < eviction->second.again;
}

bool IsLeft(const Place& place, const RelocationMemories& memory, Time now) {
  return place.Remains() && !IsLetGo(place, memory, now);
}

}  // namespace nos::controllers
