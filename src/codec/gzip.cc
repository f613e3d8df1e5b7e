#include "codec/gzip.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

namespace nos {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib.h, deflateInit2: the largest window, gzip's header
constexpr size_t kPiece = size_t{64} * 1024;

Bytef* BytesOf(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib only reads it
}

}  // namespace

std::string Gzip(std::string_view text, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();  // the only cause with these arguments
  }
  const std::unique_ptr<z_stream, decltype(&deflateEnd)> end(&stream, &deflateEnd);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = BytesOf(text);
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  (void)deflate(&stream, Z_FINISH);  // deflateBound gave enough space
  out.resize(stream.total_out);
  return out;
}

Result<std::string> Gunzip(std::string_view bytes, size_t most) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, &inflateEnd);
  stream.next_in = BytesOf(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  while (true) {
    const size_t had = out.size();
    out.resize(std::min(std::max(kPiece, had * 2), most + 1));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = static_cast<uInt>(out.size() - had);
    const int result = inflate(&stream, Z_NO_FLUSH);
    out.resize(stream.total_out);
    if (out.size() > most) {
      return Status(Code::kExhausted, fmt::format("gzip: more than {} bytes of text", most));
    }
    if (result == Z_STREAM_END) break;
    if (result != Z_OK) return Invalid("gzip: the data is damaged or cut short");
  }
  if (stream.avail_in > 0) return Invalid("gzip: something follows the end");
  return out;
}

}  // namespace nos
