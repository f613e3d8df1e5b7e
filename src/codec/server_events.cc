#include "codec/server_events.h"

#include <utility>

namespace nos {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

// A line ends with CR LF, LF or CR, and CR LF may come in two pieces.
Status ServerEventReader::Take(std::string_view piece, FunctionRef<void(ServerEvent)> visit) {
  while (!piece.empty()) {
    if (std::exchange(after_return_, false) && piece.front() == '\n') {
      piece.remove_prefix(1);
      continue;
    }
    const size_t end = piece.find_first_of("\r\n");
    rest_ += piece.substr(0, end);
    if (rest_.size() + data_.size() > most_) {
      return {Code::kExhausted, "an event of the server is too large"};
    }
    if (end == std::string_view::npos) break;
    after_return_ = piece[end] == '\r';
    piece.remove_prefix(end + 1);
    Line(std::exchange(rest_, {}), visit);
  }
  return Status::Ok();
}

void ServerEventReader::Line(std::string_view line, FunctionRef<void(ServerEvent)> visit) {
  if (!std::exchange(begun_, true) && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (line.empty()) {
    ServerEvent event{name_.empty() ? "message" : std::exchange(name_, {}), id_,
                      std::exchange(data_, {})};
    if (event.data.empty()) return;
    event.data.pop_back();  // the last line's end
    return visit(std::move(event));
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    name_ = value;
  } else if (field == "data") {
    data_.append(value).append("\n");
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    id_ = value;
  }
}

}  // namespace nos
