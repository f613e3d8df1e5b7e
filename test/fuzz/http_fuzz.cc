// Requests on a connection, split in arbitrary pieces: limits hold, refusals have a code, and an
// accepted target has only one meaning. The first byte chooses the split.
#include "net/http.h"
#include "net/request_parser.h"
#include "net/url.h"
#include "target.h"

using namespace nos;       // NOLINT
using namespace nos::net;  // NOLINT

namespace {

constexpr uint32_t kMaxHeader = 500;
constexpr uint64_t kMaxBody = 300;

void CheckTarget(std::string_view text) {
  const Result<Target> target = ParseTarget(text);
  if (!target.ok()) {
    Require(target.status().code() == Code::kInvalid, "refused as invalid");
    return;
  }
  Require(target->path.starts_with('/'), "a path begins at the root");
  Require(target->path.find("/../") == std::string::npos, "a path stays where it is");
  for (const char c : target->path) Require(static_cast<unsigned char>(c) >= ' ', "no controls");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = data[0] + size_t{1};
  std::string_view rest = FuzzText(data + 1, size - 1);
  CheckTarget(rest.substr(0, rest.find('\n')));
  std::string input;
  auto parser = std::make_unique<RequestParser>(kMaxHeader, kMaxBody);
  while (!rest.empty()) {
    input += rest.substr(0, piece);
    rest.remove_prefix(std::min(piece, rest.size()));
    const RequestParser::State state = parser->Feed(input);
    if (state == RequestParser::State::kFailed) {
      Require(parser->failure_code() >= 400 && parser->failure_code() < 600, "a code of failure");
      Require(!parser->failure().empty(), "a reason");
      return 0;
    }
    if (state != RequestParser::State::kDone) continue;
    Require(parser->request().body.size() <= kMaxBody, "bodies are bounded");
    parser = std::make_unique<RequestParser>(kMaxHeader, kMaxBody);
  }
  return 0;
}
