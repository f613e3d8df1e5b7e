// Server-sent events: the result does not depend on how the input is split.
#include <string>
#include <vector>

#include "codec/server_events.h"
#include "target.h"

using namespace nos;  // NOLINT

namespace {

std::vector<std::string> Read(std::string_view text, size_t piece) {
  std::vector<std::string> events;
  ServerEventReader reader(1 << 20);
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    const Status taken = reader.Take(text.substr(0, piece), [&](const ServerEvent& event) {
      events.push_back(event.name + "\n" + event.id + "\n" + event.data);
    });
    Require(taken.ok(), "it is small enough");
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(FuzzText(data, size).substr(0, 1 << 16));
  Require(Read(text, 1) == Read(text, 1 << 20), "pieces are put together");
  return 0;
}
