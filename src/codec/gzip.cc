#include "codec/gzip.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace nos {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, and gzip's header (zlib.h)
constexpr size_t kPiece = size_t{64} << 10;
constexpr size_t kMostAtOnce = std::numeric_limits<uInt>::max();

Bytef* In(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib only reads it
}

class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream stream{};
};

}  // namespace

std::string Gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_out = In(out);
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    const size_t piece = std::min(text.size(), kMostAtOnce);
    stream.next_in = In(text);
    stream.avail_in = static_cast<uInt>(piece);
    text.remove_prefix(piece);
    stream.avail_out = static_cast<uInt>(std::min(out.size() - stream.total_out, kMostAtOnce));
    result = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    text = {text.data() - stream.avail_in, text.size() + stream.avail_in};
  }
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Result<std::string> Gunzip(std::string_view compressed, size_t most) {
  if (compressed.size() > kMostAtOnce) return Status(Code::kExhausted, "gzip: too long");
  Inflater inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = In(compressed);
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string out;
  bool ended = false;
  while (!ended || stream.avail_in > 0) {
    if (ended) inflateReset(&stream);  // the next member
    const size_t before = out.size();
    out.resize(before + std::min(kPiece, most - before + 1));  // one more shows what is too long
    stream.next_out = In(out) + before;
    stream.avail_out = static_cast<uInt>(out.size() - before);
    const int result = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (out.size() > most) {
      return Status(Code::kExhausted, fmt::format("gzip: more than {} bytes", most));
    }
    ended = result == Z_STREAM_END;
    if (ended) continue;
    if (result != Z_OK || (stream.avail_in == 0 && out.size() == before)) {
      return Invalid(fmt::format("gzip: {}", stream.msg != nullptr ? stream.msg : "cut short"));
    }
  }
  return out;
}

}  // namespace nos
